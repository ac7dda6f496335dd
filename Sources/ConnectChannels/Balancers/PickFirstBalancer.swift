/// All calls go to one endpoint: the first that a connection was made to (gRFC A61, A62).
///
/// ``select(_:random:)`` makes one endpoint of all, so that their addresses are tried together (see ``AddressRace``).
/// Endpoints with different server names stay apart and are tried one after the other. Ejection does not count, since
/// there is nowhere else to go.
package struct PickFirstBalancer: LoadBalancer {
  /// Whether each client tries the endpoints in its own random order.
  package var shuffles: Bool
  /// Begins the keys of the endpoints: those of different parts of a tree differ.
  private let keyPrefix: String
  /// How many elements of ``Endpoint/path`` name the parts that it belongs to.
  private let depth: Int
  private var current: EndpointID?
  /// The connection was lost: the next call begins another one.
  private var isDormant = false
  /// All endpoints have failed since one was ready: the state stays until one is ready again.
  private var hasFailed = false

  package init(shuffles: Bool = false) {
    self.init(shuffles: shuffles, at: TreePlace())
  }

  init(shuffles: Bool, at place: TreePlace) {
    self.shuffles = shuffles
    self.depth = place.depth
    self.keyPrefix = place.names.isEmpty ? "pickFirst" : "pickFirst \(place.names)"
  }

  /// Addresses that are alike in this are of one endpoint.
  private struct Server: Hashable {
    var name: String?
    var cluster: String?
  }

  package mutating func select(_ endpoints: [Endpoint], random: inout SeededRandom) -> [Endpoint] {
    var endpoints = endpoints
    if self.shuffles { endpoints.shuffle(using: &random) }
    var groups: [Endpoint] = []
    var indices: [Server: Int] = [:]
    for endpoint in endpoints {
      let server = Server(name: endpoint.serverName, cluster: endpoint.cluster)
      if let index = indices[server] {
        if endpoint.zone != groups[index].zone || groups[index].zones != nil {
          groups[index].addZones(of: endpoint)
        }
        groups[index].addresses += endpoint.addresses
      } else {
        indices[server] = groups.count
        // The key lets the connection outlive a change of the addresses.
        var group = endpoint
        group.key = "\(self.keyPrefix) \(endpoint.serverName ?? "")"
        groups.append(group)
      }
    }
    // It is in none of them. Where the zone names a part of the tree, it has to stay.
    for index in groups.indices where groups[index].zones != nil && groups[index].path.count >= self.depth {
      groups[index].zone = nil
    }
    return groups
  }

  package mutating func update(
    _ endpoints: [BalancedEndpoint],
    in context: inout BalancerContext
  ) -> BalancerDecision {
    let counts = StateCounts(endpoints.lazy.map(\.state))
    if let ready = self.readyEndpoint(endpoints) {
      self.current = ready
      self.isDormant = false
      self.hasFailed = false
      return BalancerDecision(state: .ready, picker: ConstantPicker(.endpoint(ready)))
    }
    if let current = self.current.take() {
      // An endpoint that has left the list is replaced at once.
      self.isDormant = endpoints.contains { $0.id == current }
    }
    if counts.connecting > 0 {
      self.isDormant = false
      if self.hasFailed { return self.failing(endpoints) }
      return BalancerDecision(
        state: .connecting,
        picker: ConstantPicker(.wait),
        connect: self.substitutes(endpoints)
      )
    }
    guard let next = endpoints.first(where: { $0.state == .idle })?.id else {
      self.isDormant = false
      // An empty list is no failure to connect: the first addresses after it are tried as new ones.
      self.hasFailed = !endpoints.isEmpty
      return self.failing(endpoints)
    }
    if self.isDormant, !context.wantsConnection {
      return BalancerDecision(state: .idle, picker: ConstantPicker(.connect(next)))
    }
    self.isDormant = false
    if self.hasFailed { return self.failing(endpoints, connect: [next]) }
    return BalancerDecision(state: .connecting, picker: ConstantPicker(.wait), connect: [next])
  }

  private func readyEndpoint(_ endpoints: [BalancedEndpoint]) -> EndpointID? {
    if let current = self.current, endpoints.contains(where: { $0.id == current && $0.state == .ready }) {
      return current
    }
    return endpoints.first { $0.state == .ready }?.id
  }

  /// The next endpoint, if the only one with connections is in doubt.
  private func substitutes(_ endpoints: [BalancedEndpoint]) -> [EndpointID] {
    let isConnecting = endpoints.contains { $0.state == .connecting && !$0.isSuspect }
    guard !isConnecting, let next = endpoints.first(where: { $0.state == .idle }) else { return [] }
    return [next.id]
  }

  private func failing(_ endpoints: [BalancedEndpoint], connect: [EndpointID] = []) -> BalancerDecision {
    BalancerDecision(
      state: .transientFailure,
      picker: ConstantPicker(.fail(EndpointSummary(endpoints).failureMessage)),
      connect: connect
    )
  }
}
