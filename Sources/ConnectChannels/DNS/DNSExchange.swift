/// One question to the servers, until it is answered: which server comes next, when TCP is needed, and where
/// an alias leads. It makes no queries itself: a step says what to send, ``sent(_:as:to:over:)`` confirms it.
///
/// Servers are asked in turn, each `attempts` times. A query that has timed out stays open, so that a late
/// answer still counts. One server takes at most three queries: UDP with EDNS, UDP without, TCP.
struct DNSExchange {
  typealias QueryID = StubResolution.QueryID
  typealias Transport = StubResolution.Transport

  enum Step {
    case send(server: Int, Transport)
    case wait
    case finished(Outcome)
  }

  enum Outcome {
    /// Times are in seconds.
    case records([DNSRecord.Data], additional: [DNSRecord], timeToLive: UInt32)
    /// - Parameter nameExists: Whether the name has records of other types.
    case absent(nameExists: Bool, timeToLive: UInt32?)
    case tooManyAliases
    /// - Parameter isAnswered: Whether any server answered at all.
    case failed(isAnswered: Bool)
  }

  private struct Sent {
    var query: DNSQuery
    var server: Int
    var transport: Transport
  }

  /// How many times an alias may lead to another question.
  static let maximumAliases = 8

  /// What is asked for now; changes with an alias.
  private(set) var name: DNSName
  let type: DNSRecordType
  /// For one question: false once a server has refused EDNS.
  private(set) var usesEDNS = true
  /// What went wrong last, by server.
  private(set) var problems: [Int: String] = [:]

  /// Whether a failure ends the exchange, because there is an answer for the other address family.
  var endsOnFailure = false
  private let transport: Transport
  private var rotation: ServerRotation
  private var aliases = 0
  private var timeToLive = UInt32(Int32.max)
  private var isAnswered = false
  private var open: [QueryID: Sent] = [:]
  /// The query whose failure begins a query to the next server.
  private var current: QueryID?
  private var closed: [QueryID] = []

  init(name: DNSName, type: DNSRecordType, servers: ServerRotation, transport: Transport) {
    self.name = name
    self.type = type
    self.rotation = servers
    self.transport = transport
  }

  // MARK: - Queries

  /// Asks the next server.
  func start() -> Step {
    .send(server: self.rotation.server, self.transport)
  }

  mutating func sent(_ query: DNSQuery, as id: QueryID, to server: Int, over transport: Transport) {
    self.open[id] = Sent(query: query, server: server, transport: transport)
    self.current = id
  }

  /// The queries that were closed since the last call of this function. Their answers do not matter any more.
  mutating func takeClosed() -> [QueryID] {
    defer { self.closed = [] }
    return self.closed
  }

  mutating func closeAll() {
    for id in self.open.keys { self.closed.append(id) }
    self.open = [:]
    self.current = nil
  }

  private mutating func close(_ id: QueryID) {
    guard self.open.removeValue(forKey: id) != nil else { return }
    self.closed.append(id)
  }

  // MARK: - Events

  mutating func received(_ bytes: [UInt8], for id: QueryID) -> Step {
    guard let sent = self.open[id] else { return .wait }
    guard let message = DNSMessage(decoding: bytes), sent.query.isAnswered(by: message) else {
      // Anyone can send a datagram; the true answer may still come.
      guard sent.transport == .tcp else { return .wait }
      return self.failed(id, "answered another question, or not in DNS")
    }
    if message.isTruncated, sent.transport == .udp {
      self.close(id)
      return .send(server: sent.server, .tcp)
    }
    if message.responseCode == .formatError, sent.query.usesEDNS {
      self.usesEDNS = false
      self.close(id)
      return .send(server: sent.server, sent.transport)
    }
    if message.isTruncated {
      return self.failed(id, "sent a truncated answer over TCP")
    }
    return self.answered(message, id)
  }

  private mutating func answered(_ message: DNSMessage, _ id: QueryID) -> Step {
    self.isAnswered = true
    switch DNSReply(message, to: self.name, type: self.type) {
    case .records(let records, let timeToLive):
      let timeToLive = min(self.timeToLive, timeToLive)
      return self.finish(.records(records, additional: message.additional, timeToLive: timeToLive))
    case .noRecords(let timeToLive):
      return self.finish(.absent(nameExists: true, timeToLive: timeToLive.map { min($0, self.timeToLive) }))
    case .noSuchName(let timeToLive):
      return self.finish(.absent(nameExists: false, timeToLive: timeToLive.map { min($0, self.timeToLive) }))
    case .tooManyAliases:
      return self.finish(.tooManyAliases)
    case .failure(let problem):
      return self.failed(id, problem)
    case .alias(let target, let timeToLive):
      self.aliases += 1
      guard self.aliases <= Self.maximumAliases else { return self.finish(.tooManyAliases) }
      self.timeToLive = min(self.timeToLive, timeToLive)
      self.closeAll()
      self.name = target
      self.rotation.restart()
      self.problems = [:]
      // Silence about the target counts as silence, so that no other candidate of the search list is tried.
      self.isAnswered = false
      return self.start()
    }
  }

  /// The query cannot be answered any more: it was not sent, or its connection was lost, or its answer says
  /// that the server has failed.
  mutating func failed(_ id: QueryID, _ problem: String) -> Step {
    guard let sent = self.open[id] else { return .wait }
    self.problems[sent.server] = problem
    self.close(id)
    return id == self.current ? self.nextServer() : .wait
  }

  mutating func timedOut(_ id: QueryID) -> Step {
    guard id == self.current, let sent = self.open[id] else { return .wait }
    self.problems[sent.server] = "did not answer in time over \(sent.transport)"
    return self.nextServer()
  }

  private mutating func nextServer() -> Step {
    self.current = nil
    guard !self.endsOnFailure, self.rotation.advance() else {
      return self.finish(.failed(isAnswered: self.isAnswered))
    }
    return self.start()
  }

  private mutating func finish(_ outcome: Outcome) -> Step {
    self.closeAll()
    return .finished(outcome)
  }
}
