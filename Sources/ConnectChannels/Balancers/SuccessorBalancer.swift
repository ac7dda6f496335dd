/// A balancer that remembers, for example since when a part has failed. When the policy changes, the new balancer takes over what
/// the old one knew of the parts that both have. Without this, a part that has failed would get ten seconds to connect after each
/// change, and calls would wait.
protocol SuccessorBalancer: LoadBalancer {
  /// Takes over what `earlier` knows. Called before anything else.
  mutating func succeed(_ earlier: Self)
}

extension LoadBalancer {
  /// This balancer, which takes the place of `earlier`.
  func succeeding(_ earlier: any LoadBalancer) -> any LoadBalancer {
    guard let successor = self as? any SuccessorBalancer else { return self }
    return successor.takingOver(earlier)
  }
}

extension SuccessorBalancer {
  fileprivate func takingOver(_ earlier: any LoadBalancer) -> any LoadBalancer {
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
    let balancer = self.makeBalancer(random: &random)
    return earlier.map(balancer.succeeding) ?? balancer
  }
}
