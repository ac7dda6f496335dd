package import Connect

/// What a client knows of HTTP/3 at origins, and of networks where it does not work. Knows no clock, and is bounded.
///
/// Each origin has the ports where HTTP/3 may be found, with the time until when that is so. A port where HTTP/3 has failed though
/// TCP works is broken: for 5 minutes, doubling with each further failure up to a day, until HTTP/3 works again.
package struct AlternativesMemory: Sendable {
  /// Where HTTP/3 may be found for an origin.
  package enum Choice: Sendable, Hashable {
    case none
    /// - Parameter port: That of UDP.
    case http3(port: Int)
    /// There would be one if it were not broken. The value names the network in which it has failed.
    case broken(port: Int, network: Int?)
  }

  private struct Known: Sendable {
    var port: Int
    var expiry: Duration
  }

  private struct Breakage: Sendable {
    var failures: Int
    var end: Duration
    var network: Int?
  }

  private struct Entry: Sendable {
    /// The best one first.
    var known: [Known] = []
    var broken: [Int: Breakage] = [:]
    var lastUse: Duration
  }

  static let firstBreak = Duration.seconds(300)
  static let longestBreak = Duration.seconds(86_400)
  /// Ports of one origin.
  static let maximumPorts = 4

  private let maximumOrigins: Int
  private var entries: [Origin: Entry] = [:]

  /// - Parameter maximumOrigins: Those that were used last stay.
  package init(maximumOrigins: Int = 1_000) {
    self.maximumOrigins = max(maximumOrigins, 1)
  }

  package var count: Int { self.entries.count }

  // MARK: - What is known

  /// A response of the origin had this field. Alternatives at other hosts, and for other protocols than HTTP/3, are left out.
  package mutating func learn(_ field: AltSvcField, of origin: Origin, now: Duration) {
    switch field {
    case .clear:
      self.replace([], of: origin, now)
    case .alternatives(let alternatives):
      let usable = alternatives.filter { alternative in
        alternative.protocolName == "h3"
          && (alternative.host.map { $0.lowercased() == origin.host.lowercased() } ?? true)
      }
      self.replace(usable.map { Known(port: $0.port, expiry: now + $0.maximumAge) }, of: origin, now)
    }
  }

  /// An HTTPS record of the origin says that HTTP/3 is at this port.
  package mutating func learn(port: Int, of origin: Origin, timeToLive: Duration, now: Duration) {
    let expiry = now + min(max(timeToLive.clamped, .zero), Self.longestBreak)
    var known = self.entries[origin]?.known.filter { $0.expiry > now } ?? []
    if let index = known.firstIndex(where: { $0.port == port }) {
      known[index].expiry = max(known[index].expiry, expiry)
    } else {
      known.append(Known(port: port, expiry: expiry))
    }
    self.replace(known, of: origin, now)
  }

  private mutating func replace(_ known: [Known], of origin: Origin, _ now: Duration) {
    var ports: Set<Int> = []
    let known = known.filter { $0.expiry > now && ports.insert($0.port).inserted }.prefix(Self.maximumPorts)
    guard !known.isEmpty || self.entries[origin] != nil else { return }
    self.change(origin, now) { $0.known = Array(known) }
    if let entry = self.entries[origin], entry.known.isEmpty, entry.broken.isEmpty {
      self.entries[origin] = nil
    }
  }

  /// Where to try HTTP/3 now: at the first port that is not broken.
  package mutating func choice(for origin: Origin, now: Duration) -> Choice {
    guard let entry = self.entries[origin] else { return .none }
    self.entries[origin]?.lastUse = now
    var broken = Choice.none
    for known in entry.known where known.expiry > now {
      guard let breakage = entry.broken[known.port], breakage.end > now else {
        return .http3(port: known.port)
      }
      if broken == .none { broken = .broken(port: known.port, network: breakage.network) }
    }
    return broken
  }

  // MARK: - What works

  /// HTTP/3 has failed at this port, while TCP works. Failures of attempts that began before the port was broken count once.
  ///
  /// - Parameter network: Names the network that the client is in now; nil if it is not known.
  package mutating func failed(_ origin: Origin, port: Int, network: Int?, now: Duration) {
    self.change(origin, now) { entry in
      let last = entry.broken[port]
      if let last, last.end > now { return }
      let failures = min((last?.failures ?? 0) + 1, 16)
      let length = min(Self.firstBreak * (1 << (failures - 1)), Self.longestBreak)
      if entry.broken.count >= Self.maximumPorts, last == nil {
        let oldest = entry.broken.min { $0.value.end < $1.value.end }
        if let oldest { entry.broken[oldest.key] = nil }
      }
      entry.broken[port] = Breakage(failures: failures, end: now + length, network: network)
    }
  }

  /// HTTP/3 works at this port.
  package mutating func succeeded(_ origin: Origin, port: Int) {
    self.entries[origin]?.broken[port] = nil
  }

  /// The client has come into another network: what has failed before says nothing of this one.
  package mutating func networkChanged() {
    for origin in self.entries.keys { self.entries[origin]?.broken = [:] }
  }

  private mutating func change(_ origin: Origin, _ now: Duration, _ body: (inout Entry) -> Void) {
    if self.entries[origin] == nil, self.entries.count >= self.maximumOrigins { self.makeRoom(now) }
    var entry = self.entries[origin] ?? Entry(lastUse: now)
    entry.lastUse = now
    body(&entry)
    self.entries[origin] = entry
  }

  private mutating func makeRoom(_ now: Duration) {
    self.entries = self.entries.filter { _, entry in
      entry.known.contains { $0.expiry > now } || entry.broken.values.contains { $0.end > now }
    }
    guard self.entries.count >= self.maximumOrigins else { return }
    if let oldest = self.entries.min(by: { $0.value.lastUse < $1.value.lastUse }) {
      self.entries[oldest.key] = nil
    }
  }
}
