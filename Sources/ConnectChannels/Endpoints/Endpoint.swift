/// One server as a resolver describes it: its addresses, and attributes for balancers.
///
/// A server that has several addresses (for example IPv4 and IPv6) is one endpoint and gets one share of the calls.
/// DNS cannot tell which addresses are of the same server, so each address of DNS is an endpoint (gRFC A61).
public struct Endpoint: Sendable, Hashable {
  /// Where the endpoint listens, the preferred address first.
  public var addresses: [EndpointAddress]
  /// Its share of the calls relative to the other endpoints, for policies that use weights. 0 means unknown.
  public var weight: UInt32
  /// Where it runs, such as an availability zone.
  public var zone: String?
  /// The name that TLS verifies in place of the origin's host and the client's `tls.serverName`. It has the same forms as
  /// that. If it changes, the endpoint gets new connections.
  public var serverName: String?
  /// A name that stays the same when the addresses change, such as that of a pod in a StatefulSet. Ring hash places
  /// the endpoint by it (gRFC A76: `hash_key`).
  public var key: String?
  /// To which parts of a tree of policies it belongs, the outermost first: the names of children of
  /// ``BalancingPolicy/priority(_:)`` and ``BalancingPolicy/weightedTarget(_:)``. Where the path is too short, ``zone`` is the
  /// name. Empty by default.
  public var path: [String]
  /// The name of the cluster that it belongs to, if that is another than the one that routes have chosen: a part of an aggregate.
  /// Transports choose TLS by it. If it changes, the endpoint gets new connections.
  public var cluster: String?
  /// Names what transports secure its connections with; nil, the default, for what does not change. If it changes, the endpoint gets
  /// new connections.
  public var security: String?
  /// The zones of the addresses, if several servers were merged whose zones differ.
  private(set) var zones: [EndpointAddress: String]?

  /// An endpoint with the given addresses, the preferred one first.
  public init(
    addresses: [EndpointAddress],
    weight: UInt32 = 1,
    zone: String? = nil,
    serverName: String? = nil,
    key: String? = nil,
    path: [String] = [],
    cluster: String? = nil,
    security: String? = nil
  ) {
    self.addresses = addresses
    self.weight = weight
    self.zone = zone
    self.serverName = serverName
    self.key = key
    self.path = path
    self.cluster = cluster
    self.security = security
  }

  /// An endpoint with one address, weight 1, and no other attributes.
  public init(_ address: EndpointAddress) {
    self.init(addresses: [address])
  }

  /// An endpoint from the text of its addresses, with commas between them; nil if one of them is no address.
  public init?(_ text: String) {
    var addresses: [EndpointAddress] = []
    for part in text.split(separator: ",", omittingEmptySubsequences: false) {
      guard let address = EndpointAddress(String(part)) else { return nil }
      addresses.append(address)
    }
    self.init(addresses: addresses)
  }
}

extension Endpoint {
  /// Prepares a merge with an endpoint of another zone: to be called before its addresses are added.
  mutating func addZones(of other: Endpoint) {
    var zones = self.zones ?? [:]
    if self.zones == nil, let zone = self.zone { for address in self.addresses { zones[address] = zone } }
    if let zone = other.zone { for address in other.addresses { zones[address] = zones[address] ?? zone } }
    self.zones = zones
  }

  /// The zone of the server at one of the addresses.
  func zone(at address: EndpointAddress) -> String? {
    if let zones = self.zones { zones[address] } else { self.zone }
  }
}

extension Endpoint: CustomStringConvertible {
  /// The addresses, with commas between them.
  public var description: String {
    self.addresses.map(\.description).joined(separator: ",")
  }
}

// MARK: - Identity

extension Endpoint {
  /// What identifies a server across the answers of a resolver.
  public enum Identity: Sendable, Hashable {
    /// ``Endpoint/key``, for endpoints that have one.
    case key(String)
    /// The addresses in any order, for endpoints without a key.
    case addresses(Set<EndpointAddress>)
    /// One of these for a part of an aggregate: a server in two parts is two endpoints, as the parts may have other TLS.
    indirect case member(cluster: String, Identity)
  }

  /// Equal identities in two lists of a resolver mean the same server. The channel then takes over the new attributes, and
  /// keeps the server's connections if ``serverName`` and ``security`` are the same.
  public var identity: Identity {
    let server: Identity =
      if let key = self.key, !key.isEmpty { .key(key) } else { .addresses(Set(self.addresses)) }
    return self.cluster.map { .member(cluster: $0, server) } ?? server
  }

  /// The text that ring hash and random subsets hash.
  var hashKey: String {
    if let key = self.key, !key.isEmpty { return key }
    return self.addresses.first?.description ?? ""
  }
}

extension Sequence<Endpoint> {
  /// The endpoints without duplicates, so that no server gets a double share. The first endpoint with each identity
  /// stays.
  public func withoutDuplicates() -> [Endpoint] {
    var seen: Set<Endpoint.Identity> = []
    return self.filter { seen.insert($0.identity).inserted }
  }
}

extension Endpoint {
  /// Whether connections to the other endpoint, which has the same identity, are as good for this one.
  func sharesConnections(with other: Endpoint) -> Bool {
    self.serverName == other.serverName && self.security == other.security
  }
}
