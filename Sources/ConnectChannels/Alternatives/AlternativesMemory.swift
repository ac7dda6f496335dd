package import Connect

/// What a client knows of HTTP/3 at origins, and of networks where HTTP/3 does not work. Knows no clock, and is
/// bounded.
///
/// Each origin, and each cluster of an origin, has the ports where HTTP/3 may be found, each with its expiry. A port becomes
/// broken when HTTP/3 fails there though TCP works. It stays broken for 5 minutes, doubled with each further failure up to a day, until HTTP/3
/// works again.
///
/// A broken port counts for all servers of the origin, as in a network that drops UDP. Where HTTP/3 has worked before,
/// the port is broken only for the server that has failed. After failures at three servers in a row, it is broken for
/// all. An answer over HTTP/3 on a new connection ends the row.
package struct AlternativesMemory: Sendable {
  /// Where HTTP/3 may be found for an origin.
  package enum Choice: Sendable, Hashable {
    case none
    /// - Parameter port: The UDP port.
    case http3(port: Int)
    /// HTTP/3 is known at this port, but broken. `network` names the network in which it has failed.
    case broken(port: Int, network: Int?)
  }

  private struct Known: Sendable {
    var port: Int
    var expiry: Duration
  }

  fileprivate struct Breakage: Sendable {
    var server: EndpointAddress
    var failures: Int
    var end: Duration
    var network: Int?
  }

  private struct Entry: Sendable {
    /// The best one first.
    var known: [Known] = []
    var broken: [Int: Breakage] = [:]
    var brokenServers: [ServerPort: Breakage] = [:]
    /// The servers where HTTP/3 has failed since it last worked at the port. No entry for ports where it has never
    /// worked.
    var failedServers: [Int: Set<EndpointAddress>] = [:]
    /// When a try at a port ended without a verdict, if nothing has been learned since.
    var unjudged: [Int: Duration] = [:]
    var lastUse: Duration

    func breakage(at serverPort: ServerPort, now: Duration) -> Breakage? {
      [self.broken[serverPort.port], self.brokenServers[serverPort]].lazy.compactMap(\.self).first {
        $0.end > now
      }
    }
  }

  /// What one server says of HTTP/3 holds for its cluster alone: other clusters have other servers, and may belong to others.
  private struct Service: Sendable, Hashable {
    var origin: Origin
    /// Nil for the origin's own endpoints.
    var cluster: String?
  }

  /// A port of one server.
  private struct ServerPort: Sendable, Hashable {
    var server: EndpointAddress
    var port: Int
  }

  static let firstBreak = Duration.seconds(300)
  static let longestBreak = Duration.seconds(86_400)
  /// Ports of one origin.
  static let maximumPorts = 4
  /// The most servers of one origin that are broken individually.
  static let maximumServers = 64
  /// After failures at this many servers in a row, HTTP/3 is broken for all.
  static let maximumFailedServers = 3

  private let maximumOrigins: Int
  private var entries: [Service: Entry] = [:]

  /// - Parameter maximumOrigins: The most origins and clusters that are remembered. The most recently used ones stay.
  package init(maximumOrigins: Int = 1_000) {
    self.maximumOrigins = max(maximumOrigins, 1)
  }

  package var count: Int { self.entries.count }

  // MARK: - What is known

  /// A response of the origin had this field. Alternatives at other hosts, and for other protocols than HTTP/3, are left out.
  package mutating func learn(
    _ field: AltSvcField,
    of origin: Origin,
    in cluster: String? = nil,
    now: Duration
  ) {
    let service = Service(origin: origin, cluster: cluster)
    switch field {
    case .clear:
      self.replace([], of: service, now)
    case .alternatives(let alternatives):
      let usable = alternatives.filter { alternative in
        alternative.protocolName == "h3"
          && (alternative.host.map { $0.lowercased() == origin.host.lowercased() } ?? true)
      }
      self.replace(usable.map { Known(port: $0.port, expiry: now + $0.maximumAge) }, of: service, now)
    }
  }

  /// An HTTPS record of the origin says that HTTP/3 is at this port. It says nothing of clusters.
  package mutating func learn(port: Int, of origin: Origin, timeToLive: Duration, now: Duration) {
    let service = Service(origin: origin)
    let expiry = now + min(max(timeToLive.clamped, .zero), Self.longestBreak)
    var known = self.entries[service]?.known.filter { $0.expiry > now } ?? []
    if let index = known.firstIndex(where: { $0.port == port }) {
      known[index].expiry = max(known[index].expiry, expiry)
    } else {
      known.append(Known(port: port, expiry: expiry))
    }
    self.replace(known, of: service, now)
  }

  private mutating func replace(_ known: [Known], of service: Service, _ now: Duration) {
    var ports: Set<Int> = []
    let known = known.filter { $0.expiry > now && ports.insert($0.port).inserted }.prefix(Self.maximumPorts)
    guard !known.isEmpty || self.entries[service] != nil else { return }
    self.change(service, now) { $0.known = Array(known) }
    if let entry = self.entries[service], entry.known.isEmpty, entry.broken.isEmpty,
      entry.brokenServers.isEmpty
    {
      self.entries[service] = nil
    }
  }

  /// Where to try HTTP/3 now: at the first port that is not broken.
  ///
  /// - Parameter server: Where the server listens for TCP.
  package mutating func choice(
    for origin: Origin,
    in cluster: String? = nil,
    at server: EndpointAddress,
    now: Duration
  ) -> Choice {
    let service = Service(origin: origin, cluster: cluster)
    guard let entry = self.entries[service] else { return .none }
    self.entries[service]?.lastUse = now
    var broken = Choice.none
    for known in entry.known where known.expiry > now {
      guard let breakage = entry.breakage(at: ServerPort(server: server, port: known.port), now: now) else {
        return .http3(port: known.port)
      }
      if broken == .none { broken = .broken(port: known.port, network: breakage.network) }
    }
    return broken
  }

  // MARK: - What works

  /// HTTP/3 has failed on this route. Failures of attempts that began before the port was broken count once.
  ///
  /// - Parameter onlyAtServer: Whether the failure says nothing about other servers, as when it is unknown whether TCP
  ///   works.
  mutating func failed(_ origin: Origin, _ route: QUICRoute, onlyAtServer: Bool = false, now: Duration) {
    self.change(Service(origin: origin, cluster: route.cluster), now) { entry in
      let (server, port) = (route.server, route.port)
      let serverPort = ServerPort(server: server, port: port)
      entry.unjudged[port] = nil
      guard entry.breakage(at: serverPort, now: now) == nil else { return }
      let last = max(entry.broken[port]?.failures ?? 0, entry.brokenServers[serverPort]?.failures ?? 0)
      let failures = min(last + 1, 16)
      let length = min(Self.firstBreak * (1 << (failures - 1)), Self.longestBreak)
      let breakage = Breakage(server: server, failures: failures, end: now + length, network: route.network)
      if !onlyAtServer, let servers = entry.failedServers[port]?.union([server]) {
        entry.failedServers[port] = servers.count < Self.maximumFailedServers ? servers : nil
      }
      if onlyAtServer || entry.failedServers[port] != nil {
        entry.brokenServers.insert(breakage, for: serverPort, limit: Self.maximumServers)
      } else {
        entry.broken.insert(breakage, for: port, limit: Self.maximumPorts)
      }
    }
  }

  /// A try ended without a verdict: its TCP connection was ready long before QUIC, and ended soon after. The second
  /// such try in a row counts as a failure. Otherwise, in a network that drops UDP, each short connection would wait
  /// for QUIC.
  ///
  /// - Parameter start: When the try began. Tries at the same time count once.
  mutating func leftUnjudged(_ origin: Origin, _ route: QUICRoute, since start: Duration, now: Duration) {
    let service = Service(origin: origin, cluster: route.cluster)
    if let last = self.entries[service]?.unjudged[route.port] {
      if start >= last { self.failed(origin, route, now: now) }
      return
    }
    self.change(service, now) { entry in
      if entry.unjudged.count >= Self.maximumPorts { entry.unjudged = [:] }
      entry.unjudged[route.port] = now
    }
  }

  /// A server has answered over HTTP/3 at this port.
  package mutating func succeeded(
    _ origin: Origin,
    in cluster: String? = nil,
    port: Int,
    at server: EndpointAddress
  ) {
    let service = Service(origin: origin, cluster: cluster)
    guard var entry = self.entries[service] else { return }
    entry.brokenServers[ServerPort(server: server, port: port)] = nil
    entry.unjudged[port] = nil
    if let breakage = entry.broken.removeValue(forKey: port), breakage.server != server {
      // HTTP/3 works at another server, so only that server is broken.
      let serverPort = ServerPort(server: breakage.server, port: port)
      entry.brokenServers.insert(breakage, for: serverPort, limit: Self.maximumServers)
    }
    if entry.failedServers.count < Self.maximumPorts || entry.failedServers[port] != nil {
      entry.failedServers[port] = []
    }
    self.entries[service] = entry
  }

  /// The client has come into another network: what has failed or worked before says nothing of this one.
  package mutating func networkChanged() {
    for service in self.entries.keys {
      self.entries[service]?.broken = [:]
      self.entries[service]?.brokenServers = [:]
      self.entries[service]?.failedServers = [:]
      self.entries[service]?.unjudged = [:]
    }
  }

  private mutating func change(_ service: Service, _ now: Duration, _ body: (inout Entry) -> Void) {
    if self.entries[service] == nil, self.entries.count >= self.maximumOrigins { self.makeRoom(now) }
    var entry = self.entries[service] ?? Entry(lastUse: now)
    entry.lastUse = now
    body(&entry)
    self.entries[service] = entry
  }

  private mutating func makeRoom(_ now: Duration) {
    self.entries = self.entries.filter { _, entry in
      entry.known.contains { $0.expiry > now } || entry.broken.values.contains { $0.end > now }
        || entry.brokenServers.values.contains { $0.end > now }
    }
    guard self.entries.count >= self.maximumOrigins else { return }
    if let oldest = self.entries.min(by: { $0.value.lastUse < $1.value.lastUse }) {
      self.entries[oldest.key] = nil
    }
  }
}

extension Dictionary where Value == AlternativesMemory.Breakage {
  /// Inserts the breakage. At the limit, it replaces the breakage that ends first.
  fileprivate mutating func insert(_ breakage: Value, for key: Key, limit: Int) {
    if self[key] == nil, self.count >= limit, let oldest = self.min(by: { $0.value.end < $1.value.end }) {
      self[oldest.key] = nil
    }
    self[key] = breakage
  }
}
