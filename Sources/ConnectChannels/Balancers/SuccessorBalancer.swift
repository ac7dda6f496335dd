/// A balancer that knows things from earlier, such as when a part has failed. When the policy changes, the new balancer goes on
/// with what the old one knew of the parts that both have. Otherwise each change would begin all waits anew.
protocol SuccessorBalancer: LoadBalancer {
  /// Takes over what `earlier` knows. Called before anything else.
  mutating func succeed(_ earlier: Self)
}

extension SuccessorBalancer {
  fileprivate func succeeding(_ earlier: any LoadBalancer) -> any LoadBalancer {
    guard let earlier = earlier as? Self else { return self }
    var successor = self
    successor.succeed(earlier)
    return successor
  }
}

extension BalancingPolicy {
  /// A balancer of this policy for a channel, which takes the place of one of another policy.
  package func makeBalancer(
    random: inout SeededRandom,
    after earlier: (any LoadBalancer)?
  ) -> any LoadBalancer {
    self.makeBalancer(random: &random, at: TreePlace(), after: earlier)
  }

  /// The same for a place in a tree of policies.
  func makeBalancer(
    random: inout SeededRandom,
    at place: TreePlace,
    after earlier: (any LoadBalancer)?
  ) -> any LoadBalancer {
    let balancer = self.makeBalancer(random: &random, at: place)
    guard let earlier, let successor = balancer as? any SuccessorBalancer else { return balancer }
    return successor.succeeding(earlier)
  }
}
