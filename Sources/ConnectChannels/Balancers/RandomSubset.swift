/// Lets another policy see only some of the endpoints, different ones for each client (gRFC A68). It is for fleets so
/// large that connecting all clients to all servers costs too much.
///
/// Rendezvous hashing: each endpoint is hashed with the seed of this client, and those with the smallest hashes are
/// kept. When one server comes or goes, at most one endpoint of the subset changes.
package struct RandomSubset: SuccessorBalancer {
  /// How many endpoints are kept.
  package let size: Int
  private let seed: UInt64
  private var base: any LoadBalancer

  /// - Parameters:
  ///   - size: At least 1.
  ///   - seed: Different for each client.
  package init(_ base: any LoadBalancer, size: Int = 20, seed: UInt64) {
    self.base = base
    self.size = max(1, size)
    self.seed = seed
  }

  mutating func succeed(_ earlier: RandomSubset) { self.base = self.base.succeeding(earlier.base) }

  package mutating func select(_ endpoints: [Endpoint], random: inout SeededRandom) -> [Endpoint] {
    self.base.select(self.subset(of: endpoints), random: &random)
  }

  /// In the order of the list.
  func subset(of endpoints: [Endpoint]) -> [Endpoint] {
    guard endpoints.count > self.size else { return endpoints }
    var ranks = endpoints.enumerated().map { (XXH64.hash($1.hashKey, seed: self.seed), $0) }
    ranks.sort { $0 < $1 }
    return ranks[..<self.size].map(\.1).sorted().map { endpoints[$0] }
  }

  package mutating func update(
    _ endpoints: [BalancedEndpoint],
    in context: inout BalancerContext
  ) -> BalancerDecision {
    self.base.update(endpoints, in: &context)
  }
}
