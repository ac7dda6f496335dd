/// One server as a resolver describes it: its addresses, and attributes for balancers.
///
/// A server that has several addresses (for example IPv4 and IPv6) is one endpoint and gets one share of the calls.
/// DNS cannot tell which addresses are of the same server, so each address of DNS is an endpoint (gRFC A61).
public struct Endpoint: Sendable, Hashable {
  private struct Values: Sendable, Hashable {
    var addresses: [EndpointAddress]
    var weight: UInt32
    var zone: String?
    var serverName: String?
    var key: String?
    var path: [String]
    var cluster: String?
    var security: String?
    var zones: [EndpointAddress: String]? = nil
  }

  /// Never changes. Lists of endpoints are copied with each change of one, so that a copy should take one reference.
  private final class Storage: Sendable {
    let values: Values

    init(_ values: Values) {
      self.values = values
    }
  }

  private var storage: Storage

  private mutating func change(_ change: (inout Values) -> Void) {
    var values = self.storage.values
    change(&values)
    self.storage = Storage(values)
  }

  /// Where the endpoint listens, the preferred address first.
  public var addresses: [EndpointAddress] {
    get { self.storage.values.addresses }
    set { self.change { $0.addresses = newValue } }
  }
  /// Its share of the calls relative to the other endpoints, for policies that use weights. 0 means unknown.
  public var weight: UInt32 {
    get { self.storage.values.weight }
    set { self.change { $0.weight = newValue } }
  }
  /// Where it runs, such as an availability zone.
  public var zone: String? {
    get { self.storage.values.zone }
    set { self.change { $0.zone = newValue } }
  }
  /// The name that TLS verifies in place of the origin's host and the client's `tls.serverName`. It has the same forms as
  /// that. If it changes, the endpoint gets new connections.
  public var serverName: String? {
    get { self.storage.values.serverName }
    set { self.change { $0.serverName = newValue } }
  }
  /// A name that stays the same when the addresses change, such as that of a pod in a StatefulSet. Ring hash places
  /// the endpoint by it (gRFC A76: `hash_key`).
  public var key: String? {
    get { self.storage.values.key }
    set { self.change { $0.key = newValue } }
  }
  /// To which parts of a tree of policies it belongs, the outermost first: the names of children of
  /// ``BalancingPolicy/priority(_:)`` and ``BalancingPolicy/weightedTarget(_:)``. Where the path is too short, ``zone`` is the
  /// name. Empty by default.
  public var path: [String] {
    get { self.storage.values.path }
    set { self.change { $0.path = newValue } }
  }
  /// The name of the cluster that it belongs to, if that is another than the one that routes have chosen: a part of an aggregate.
  /// Transports choose TLS by it. If it changes, the endpoint gets new connections.
  public var cluster: String? {
    get { self.storage.values.cluster }
    set { self.change { $0.cluster = newValue } }
  }
  /// Names what transports secure its connections with; nil, the default, for what does not change. If it changes, the endpoint gets
  /// new connections.
  public var security: String? {
    get { self.storage.values.security }
    set { self.change { $0.security = newValue } }
  }
  /// The zones of the addresses, if several servers were merged whose zones differ.
  private(set) var zones: [EndpointAddress: String]? {
    get { self.storage.values.zones }
    set { self.change { $0.zones = newValue } }
  }

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
    self.storage = Storage(
      Values(
        addresses: addresses,
        weight: weight,
        zone: zone,
        serverName: serverName,
        key: key,
        path: path,
        cluster: cluster,
        security: security
      )
    )
  }

  /// The same server at another place.
  package func placed(zone: String?, path: [String], security: String?, weight: UInt32) -> Endpoint {
    var endpoint = self
    endpoint.change { values in
      (values.zone, values.path, values.security, values.weight) = (zone, path, security, weight)
    }
    return endpoint
  }

  public static func == (left: Endpoint, right: Endpoint) -> Bool {
    left.isIdentical(to: right) || left.storage.values == right.storage.values
  }

  public func hash(into hasher: inout Hasher) { self.storage.values.hash(into: &hasher) }

  /// Whether it is a copy of the other one. Others may be equal, too.
  func isIdentical(to other: Endpoint) -> Bool { self.storage === other.storage }

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

  /// Is equal where ``identity`` is, and takes fewer steps to make and to hash.
  struct ServerKey: Hashable {
    private enum Server: Hashable {
      case key(String)
      case address(EndpointAddress)
      case addresses(Set<EndpointAddress>)
    }

    private let server: Server
    private let cluster: String?

    init(_ endpoint: Endpoint) {
      self.cluster = endpoint.cluster
      if let key = endpoint.key, !key.isEmpty {
        self.server = .key(key)
        return
      }
      let addresses = endpoint.addresses
      if let first = addresses.first, addresses.allSatisfy({ $0 == first }) {
        self.server = .address(first)
      } else {
        self.server = .addresses(Set(addresses))
      }
    }
  }

  var serverKey: ServerKey { ServerKey(self) }

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
    var seen: Set<Endpoint.ServerKey> = []
    seen.reserveCapacity(self.underestimatedCount)
    return self.filter { seen.insert($0.serverKey).inserted }
  }
}

extension Endpoint {
  /// Whether connections to the other endpoint, which has the same identity, are as good for this one.
  func sharesConnections(with other: Endpoint) -> Bool {
    self.serverName == other.serverName && self.security == other.security
  }
}
