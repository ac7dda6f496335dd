internal import Connect
internal import ConnectSimulation
internal import ConnectTesting
internal import SwiftProtobuf

extension Scenario {
  func makeService(in cluster: SimulatedCluster, _ ledger: Ledger) -> SimulatedService {
    cluster.network.roundTrip = self.roundTrip
    cluster.network.loss = self.loss
    ledger.heedsHealth = self.modelsHealth
    ledger.textsAreUnique = self.cacheLifetime == nil
    var count = 0
    let service = cluster.service("explorer.internal:443", servers: self.servers, zones: self.zones) {
      server in
      server.latency = self.latency
      server.path = self.path(of: count)
      server.concurrency = self.concurrency
      server.queueLimit = self.queueLimit
      server.timeLimit = self.timeLimit
      server.maximumRequestsPerConnection = self.requestsPerConnection
      server.maximumConnectionAge = self.serverConnectionAge
      server.finishesAbandonedRequests = self.finishesAbandonedRequests
      if self.checksHealth { server.health = .serving }
      server.onArrival = { head in
        if let call = head.headers.first(Caller.header) { ledger.requestArrived(of: call) }
      }
      self.answer(on: server, Desk(self, ledger, server: count))
      count += 1
    }
    if let time = self.homeTime { ledger.home = (self.homeServers, time) }
    if self.routesStayHome { ledger.routedHome = self.homeServers }
    ledger.settledSince = self.nameDelay + (self.zoneSubject == .spill ? .seconds(15) : .seconds(5))
    service.nameDelay = self.nameDelay
    service.serviceConfig = self.serviceConfig
    return service
  }

  private func answer(on server: SimulatedServer, _ desk: Desk) {
    for method in [MethodSpec<Text, Text>.post, .get] {
      server.onUnary(method) { request, context in
        try desk.open(request.value, context)
        return Answer(request.value, at: desk.ledger.now).message
      }
    }
    server.onServerStream(.list) { request, responses, context in
      try desk.open(request.value, context)
      for number in 0..<3 {
        try await responses.send(Text("\(request.value) \(number)"))
        try await context.sleep(for: .milliseconds(7))
      }
    }
    server.onClientStream(.upload) { requests, context in
      var count = 0
      var text = ""
      for try await request in requests {
        text = request.value
        if count == 0 { try desk.open(text, context) }
        count += 1
      }
      return Text("\(text) \(count)")
    }
    server.onBidirectionalStream(.talk) { requests, responses, context in
      var count = 0
      for try await request in requests {
        if count == 0 { try desk.open(request.value, context) }
        try await responses.send(Text("\(request.value) \(count)"))
        count += 1
      }
    }
  }
}

/// Records a server's requests, and checks their tokens.
private struct Desk: Sendable {
  let ledger: Ledger
  private let hasCredentials: Bool
  private let mayBeAbandoned: Bool
  private let server: Int

  init(_ scenario: Scenario, _ ledger: Ledger, server: Int) {
    self.ledger = ledger
    self.hasCredentials = scenario.tokenLifetime != nil
    self.mayBeAbandoned = scenario.finishesAbandonedRequests
    self.server = server
  }

  func open(_ text: String, _ context: ServerContext) throws {
    self.ledger.requestCame(text, to: self.server, mayBeAbandoned: self.mayBeAbandoned)
    guard self.hasCredentials else { return }
    guard context.requestHeaders.first("authorization") == "Bearer \(self.ledger.validToken)" else {
      throw ConnectError(code: .unauthenticated, message: "the token is not valid")
    }
  }
}
