/// The open exchanges of one lookup: gives each query its id, and turns steps into actions.
struct DNSExchanges {
  typealias Action = StubResolution.Action
  typealias QueryID = StubResolution.QueryID

  /// What an exchange is for.
  enum Purpose: Hashable {
    case services, texts, bindings
    /// One family of a name's addresses.
    case addresses(of: DNSName)
  }

  struct Finished {
    var purpose: Purpose
    var exchange: DNSExchange
    var outcome: DNSExchange.Outcome
  }

  private let configuration: ResolverConfiguration
  /// The order in which servers are asked.
  private let servers: [Int]
  private var exchanges: [Int: (exchange: DNSExchange, purpose: Purpose)] = [:]
  private var owners: [QueryID: Int] = [:]
  private var nextNumber = 0

  /// - Parameter firstServer: The index of the server that is asked first.
  init(configuration: ResolverConfiguration, firstServer: Int) {
    self.configuration = configuration
    let count = configuration.servers.count
    self.servers = (0..<count).map { ($0 + firstServer) % count }
  }

  mutating func start(
    _ name: DNSName,
    _ type: DNSRecordType,
    for purpose: Purpose,
    _ actions: inout [Action],
    _ random: inout some RandomNumberGenerator
  ) {
    let exchange = DNSExchange(
      name: name,
      type: type,
      servers: ServerRotation(servers: self.servers, attempts: self.configuration.attempts),
      transport: self.configuration.usesTCP ? .tcp : .udp
    )
    self.nextNumber += 1
    self.exchanges[self.nextNumber] = (exchange, purpose)
    _ = self.run(exchange.start(), of: self.nextNumber, &actions, &random)
  }

  /// Something has happened to a query. Events of unknown queries are ignored.
  ///
  /// - Returns: The exchange, if the event has finished it.
  mutating func event(
    _ id: QueryID,
    endsOnFailure: (Purpose) -> Bool,
    _ actions: inout [Action],
    _ random: inout some RandomNumberGenerator,
    _ body: (inout DNSExchange) -> DNSExchange.Step
  ) -> Finished? {
    guard let number = self.owners[id], let purpose = self.exchanges[number]?.purpose,
      var exchange = self.exchanges[number]?.exchange
    else { return nil }
    exchange.endsOnFailure = endsOnFailure(purpose)
    let step = body(&exchange)
    self.exchanges[number] = (exchange, purpose)
    return self.run(step, of: number, &actions, &random)
  }

  mutating func stopAll(_ actions: inout [Action]) {
    for id in self.owners.keys { actions.append(.stop(id)) }
    self.owners = [:]
    self.exchanges = [:]
  }

  private mutating func run(
    _ step: DNSExchange.Step,
    of number: Int,
    _ actions: inout [Action],
    _ random: inout some RandomNumberGenerator
  ) -> Finished? {
    guard let purpose = self.exchanges[number]?.purpose, var exchange = self.exchanges[number]?.exchange
    else {
      return nil
    }
    for id in exchange.takeClosed() {
      self.owners[id] = nil
      actions.append(.stop(id))
    }
    switch step {
    case .wait:
      break
    case .send(let server, let transport):
      self.nextNumber += 1
      let id = QueryID(number: self.nextNumber)
      let query = DNSQuery(
        id: .random(in: 0 ... .max, using: &random),
        name: exchange.name,
        type: exchange.type,
        usesEDNS: exchange.usesEDNS
      )
      exchange.sent(query, as: id, to: server, over: transport)
      self.owners[id] = number
      actions.append(
        .send(
          StubResolution.Query(
            id: id,
            server: self.configuration.servers[server],
            transport: transport,
            bytes: query.encoded,
            timeout: self.configuration.timeout
          )
        )
      )
    case .finished(let outcome):
      self.exchanges[number] = nil
      return Finished(purpose: purpose, exchange: exchange, outcome: outcome)
    }
    self.exchanges[number] = (exchange, purpose)
    return nil
  }
}
