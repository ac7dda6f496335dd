/// One lookup by a stub resolver. It asks for the addresses of a name, for a service (SRV, then the addresses of its
/// targets), for texts (TXT), or for service bindings (HTTPS). Events go in, actions come out; it does no I/O and knows
/// no clock.
///
///     start ──► candidates of the search list, one after the other ──► addresses, texts ──► finished
///                     │                                                                        ▲
///                     └──► services ──► addresses of the targets, some in parallel ────────────┘
///
/// A and AAAA are asked for in parallel. Each candidate costs at most
/// `3 × attempts × servers × (1 + aliases)` queries for each record type.
///
/// After `start`, each lookup gives exactly one `finish`, unless it is cancelled. For each query the driver
/// reports responses, one failure, or one timeout, until `stop` names the query. Many targets that do not
/// resolve take long: the driver bounds the whole lookup with ``expire()``.
package struct StubResolution: Sendable {
  package let question: Question
  private let configuration: ResolverConfiguration
  private let hosts: HostsFile
  private var exchanges: DNSExchanges
  private var candidates: ArraySlice<DNSName> = []
  private var search = SearchProgress()
  private var services = ServiceTargets()
  /// Names of which an address family is still missing.
  private var groups: [DNSName: AddressGroup] = [:]
  package private(set) var isFinished = false

  package init(_ question: Question, configuration: ResolverConfiguration, hosts: HostsFile = HostsFile()) {
    self.question = question
    self.configuration = configuration
    self.hosts = hosts
    self.exchanges = DNSExchanges(configuration: configuration, firstServer: 0)
  }

  // MARK: - Events

  /// Begins the lookup. To be called once.
  package mutating func start(using random: inout some RandomNumberGenerator) -> [Action] {
    var actions: [Action] = []
    let count = self.configuration.servers.count
    if self.configuration.rotatesServers, count > 1 {
      let first = Int.random(in: 0..<count, using: &random)
      self.exchanges = DNSExchanges(configuration: self.configuration, firstServer: first)
    }
    if case .addresses(let name) = self.question, let addresses = self.hosts.knownAddresses(of: name) {
      self.finish(.success(Answer(hosts: [.init(name: name, addresses: addresses)])), &actions)
      return actions
    }
    self.candidates = self.configuration.candidates(for: self.question.name)[...]
    if self.candidates.isEmpty {
      self.finish(.failure(.invalidName(self.question.name)), &actions)
    } else if count == 0 {
      self.finish(.failure(.noServers(self.question.name)), &actions)
    } else {
      self.startNextCandidate(&actions, &random)
    }
    return actions
  }

  /// Bytes have arrived: a datagram from the query's server, or a message on its TCP connection.
  package mutating func received(
    _ bytes: [UInt8],
    for id: QueryID,
    using random: inout some RandomNumberGenerator
  ) -> [Action] {
    self.event(id, &random) { $0.received(bytes, for: id) }
  }

  /// The query could not be sent, or its connection was lost.
  ///
  /// - Parameter problem: What happened, for people: "refused the connection".
  package mutating func failed(
    _ id: QueryID,
    _ problem: String,
    using random: inout some RandomNumberGenerator
  ) -> [Action] {
    self.event(id, &random) { $0.failed(id, problem) }
  }

  /// The query's time is over.
  package mutating func timedOut(_ id: QueryID, using random: inout some RandomNumberGenerator) -> [Action] {
    self.event(id, &random) { $0.timedOut(id) }
  }

  /// The time for the whole lookup is over: finishes it with what has been found so far.
  package mutating func expire() -> [Action] {
    guard !self.isFinished else { return [] }
    var actions: [Action] = []
    switch self.question {
    case .addresses:
      if let group = self.groups.values.first, group.hasAddresses {
        self.finish(group, &actions)
        return actions
      }
    case .services where !self.groups.isEmpty:
      for group in self.groups.values { self.services.resolved(group.name, group.outcome) }
      self.finish(self.services.result(of: self.question.name, self.search), &actions)
      return actions
    case .services, .texts, .bindings:
      break
    }
    self.search.note(.unreachable)
    self.finish(.failure(self.search.error(for: self.question)), &actions)
    return actions
  }

  /// Gives the lookup up. Nothing is finished; the caller knows.
  package mutating func cancel() -> [Action] {
    var actions: [Action] = []
    self.isFinished = true
    self.exchanges.stopAll(&actions)
    return actions
  }

  private mutating func event(
    _ id: QueryID,
    _ random: inout some RandomNumberGenerator,
    _ body: (inout DNSExchange) -> DNSExchange.Step
  ) -> [Action] {
    var actions: [Action] = []
    // With addresses of one family, a failure of the other is not worth another timeout.
    let groups = self.groups
    func endsOnFailure(_ purpose: DNSExchanges.Purpose) -> Bool {
      if case .addresses(let name) = purpose { groups[name]?.hasAddresses ?? false } else { false }
    }
    if let finished = self.exchanges.event(id, endsOnFailure: endsOnFailure, &actions, &random, body) {
      self.finished(finished, &actions, &random)
    }
    return actions
  }

  // MARK: - Outcomes

  private mutating func finished(
    _ finished: DNSExchanges.Finished,
    _ actions: inout [Action],
    _ random: inout some RandomNumberGenerator
  ) {
    self.search.note(finished.exchange.problems, servers: self.configuration.servers)
    switch (finished.purpose, finished.outcome) {
    case (.addresses(let name), let outcome):
      self.groups[name]?.add(outcome, type: finished.exchange.type)
      guard let group = self.groups[name], group.isComplete else { return }
      self.groups[name] = nil
      self.finished(group, &actions, &random)
    case (.texts, .records(let records, _, let timeToLive)):
      let texts = records.compactMap {
        if case .text(let strings) = $0 { Array(strings.joined()) } else { nil }
      }
      self.finish(.success(Answer(texts: texts, timeToLive: .seconds(timeToLive))), &actions)
    case (.bindings, .records(let records, _, let timeToLive)):
      let bindings = records.compactMap { if case .binding(let binding) = $0 { binding } else { nil } }
      self.finish(.success(Answer(bindings: bindings, timeToLive: .seconds(timeToLive))), &actions)
    case (.services, .records(let records, let additional, let timeToLive)):
      guard self.services.start(records, additional: additional, timeToLive: timeToLive) else {
        self.finish(.failure(.serviceUnavailable(self.question.name, timeToLive: timeToLive)), &actions)
        return
      }
      self.resolveTargets(&actions, &random)
    case (.bindings, .absent(nameExists: true, let timeToLive)):
      // Records of another candidate would be of another server.
      self.candidates = []
      self.candidateFailed(.noRecords(timeToLive: timeToLive), &actions, &random)
    case (.texts, let outcome), (.services, let outcome), (.bindings, let outcome):
      self.candidateFailed(Absence(outcome), &actions, &random)
    }
  }

  private mutating func finished(
    _ group: AddressGroup,
    _ actions: inout [Action],
    _ random: inout some RandomNumberGenerator
  ) {
    if case .services = self.question {
      self.services.resolved(group.name, group.outcome)
      self.resolveTargets(&actions, &random)
      return
    }
    if case .nothing(let absence) = group.outcome {
      self.candidateFailed(absence, &actions, &random)
    } else {
      self.finish(group, &actions)
    }
  }

  // MARK: - Names

  private mutating func startNextCandidate(
    _ actions: inout [Action],
    _ random: inout some RandomNumberGenerator
  ) {
    guard let name = self.candidates.popFirst() else {
      self.finish(.failure(self.search.error(for: self.question)), &actions)
      return
    }
    self.search.tried.append(name)
    switch self.question {
    case .addresses: self.startAddresses(of: name, &actions, &random)
    case .services: self.exchanges.start(name, .srv, for: .services, &actions, &random)
    case .texts: self.exchanges.start(name, .txt, for: .texts, &actions, &random)
    case .bindings: self.exchanges.start(name, .https, for: .bindings, &actions, &random)
    }
  }

  private mutating func candidateFailed(
    _ absence: Absence,
    _ actions: inout [Action],
    _ random: inout some RandomNumberGenerator
  ) {
    self.search.note(absence)
    // As in the C library: any answer leads to the next candidate, silence does not.
    if absence == .unreachable { self.candidates = [] }
    self.startNextCandidate(&actions, &random)
  }

  private mutating func resolveTargets(
    _ actions: inout [Action],
    _ random: inout some RandomNumberGenerator
  ) {
    while self.groups.count < ServiceTargets.parallelTargets, let name = self.services.nextTarget() {
      if let addresses = self.hosts.knownAddresses(of: name.description) {
        self.services.resolved(name, .addresses(addresses, timeToLive: UInt32(Int32.max)))
      } else {
        self.startAddresses(of: name, &actions, &random)
      }
    }
    guard self.groups.isEmpty else { return }
    self.finish(self.services.result(of: self.question.name, self.search), &actions)
  }

  private mutating func startAddresses(
    of name: DNSName,
    _ actions: inout [Action],
    _ random: inout some RandomNumberGenerator
  ) {
    self.groups[name] = AddressGroup(name: name)
    self.exchanges.start(name, .aaaa, for: .addresses(of: name), &actions, &random)
    self.exchanges.start(name, .a, for: .addresses(of: name), &actions, &random)
  }

  // MARK: - The end

  /// - Parameter group: One with addresses.
  private mutating func finish(_ group: AddressGroup, _ actions: inout [Action]) {
    guard case .addresses(let addresses, let timeToLive) = group.outcome else { return }
    let host = Answer.Host(name: group.name.description, addresses: addresses)
    self.finish(.success(Answer(hosts: [host], timeToLive: .seconds(timeToLive))), &actions)
  }

  private mutating func finish(_ result: Result<Answer, ResolutionError>, _ actions: inout [Action]) {
    self.isFinished = true
    self.exchanges.stopAll(&actions)
    actions.append(.finish(result))
  }
}

extension HostsFile {
  /// Addresses that need no query: of IP addresses, of the file, and of `localhost` (RFC 6761, section 6.3).
  package func knownAddresses(of name: String) -> [IPAddress]? {
    if let address = IPAddress(name) { return [address] }
    let addresses = self.addresses(of: name)
    if !addresses.isEmpty { return addresses }
    guard DNSName(name)?.labels.last == Array("localhost".utf8) else { return nil }
    return [.loopbackIPv6, .loopbackIPv4]
  }
}
