internal import Connect
internal import ConnectChannels
internal import ConnectInterceptors
package import ConnectSimulation
internal import ConnectTesting
internal import SwiftProtobuf

/// The result of a scenario's run.
package struct Finding: Sendable {
  package let report: SimulationReport
  /// Events that must not happen, but did.
  package let problems: [String]
  /// What of trees of policies could be checked.
  package let checks: [String]
}

extension Scenario {
  /// Runs the scenario, and compares the events with the model.
  package func run() async -> Finding {
    let cluster = SimulatedCluster(seed: self.seed)
    let ledger = Ledger(servers: self.servers, clock: cluster.clock)
    let service = self.makeService(in: cluster, ledger)
    self.scheduleRouting(in: cluster, service, ledger)
    for trouble in self.troubles { trouble.schedule(in: cluster, service, ledger) }
    let caller = Caller(self, self.makeClient(in: cluster, ledger), cluster.clock, ledger)
    let report = await cluster.run(for: self.duration, load: self.load) { try await caller.call($0) }
    return Finding(
      report: report,
      problems: report.violations + self.problems(report, ledger),
      checks: self.zoneChecks(ledger)
    )
  }
}

/// Makes the calls of a scenario.
struct Caller: Sendable {
  /// The header with the call's text, if the text is unique.
  static let header = "x-call"

  let scenario: Scenario
  let client: ProtocolClient
  let clock: VirtualClock
  let ledger: Ledger

  init(_ scenario: Scenario, _ client: ProtocolClient, _ clock: VirtualClock, _ ledger: Ledger) {
    self.scenario = scenario
    self.client = client
    self.clock = clock
    self.ledger = ledger
  }

  func call(_ number: Int) async throws {
    let text = self.scenario.text(of: number)
    let start = self.ledger.callBegan(text)
    do {
      try await self.cancelling(number) { try await self.call(text) }
    } catch {
      self.ledger.callEnded(text, since: start, error)
      throw error
    }
    self.ledger.callEnded(text, since: start, nil)
  }

  /// Cancels some of the calls after some time. A cancelled call must end at once.
  private func cancelling(_ number: Int, _ call: @escaping @Sendable () async throws -> Void) async throws {
    var random = SeededRandom(seed: self.scenario.seed &+ UInt64(number) &* 0x9e37_79b9)
    guard self.scenario.cancellations > 0, random.chance(self.scenario.cancellations) else {
      return try await call()
    }
    let time = random.duration(.zero ... .milliseconds(300))
    try await withThrowingTaskGroup(of: Bool.self) { group in
      group.addTask {
        try await call()
        return true
      }
      group.addTask {
        try await self.clock.sleep(for: time)
        return false
      }
      let hasEnded = try await group.next()
      group.cancelAll()
      guard hasEnded == false else { return }
      let cancelled = self.clock.now
      defer {
        let delay = cancelled.duration(to: self.clock.now)
        if delay > .zero { self.ledger.problem("call \(number) went on for \(delay) when it was cancelled") }
      }
      _ = try await group.next()
    }
  }

  // MARK: Kinds of calls

  private func call(_ text: String) async throws {
    let request = Text(text)
    var options = CallOptions()
    if self.ledger.textsAreUnique { options.headers = [Self.header: [text]] }
    switch self.scenario.kind {
    case .unary:
      self.check(try await self.client.unary(.post, request, options: options).get(), answers: text)
    case .get: self.check(try await self.client.unary(.get, request, options: options).get(), answers: text)
    case .cacheAndNetwork:
      var last: ResponseMessage<Text>?
      for await response in self.client.cacheAndNetwork(.get, request, options: options) {
        if let message = response.message { self.check(message, answers: text) }
        last = response
      }
      try Task.checkCancellation()
      guard let last else { return self.ledger.problem("call \(text) brought nothing at all") }
      _ = try last.get()
    case .serverStream:
      var count = 0
      for try await message in self.client.serverStream(.list, request, options: options).messages {
        self.check(message, "\(text) \(count)", of: text)
        count += 1
      }
      // The loop ends without an error if the task is cancelled.
      try Task.checkCancellation()
      if count != 3 { self.ledger.problem("call \(text) succeeded with \(count) of 3 messages") }
    case .clientStream:
      let stream = self.client.clientStream(.upload, options: options)
      do {
        for _ in 0..<3 {
          try await stream.send(request)
          try await self.clock.sleep(for: .milliseconds(5))
        }
      } catch is ConnectError {
        // The response has the error.
      }
      self.check(try await stream.closeAndReceive().get(), "\(text) 3", of: text)
    case .bidirectionalStream:
      let stream = self.client.bidirectionalStream(.talk, options: options)
      var answers = stream.messages.makeAsyncIterator()
      for number in 0..<3 {
        // If sending fails, the stream of answers has the error.
        try? await stream.send(request)
        guard let answer = try await answers.next() else {
          try Task.checkCancellation()
          return self.ledger.problem("call \(text) succeeded with \(number) of 3 answers")
        }
        self.check(answer, "\(text) \(number)", of: text)
      }
      stream.finish()
      if try await answers.next() != nil { self.ledger.problem("call \(text) has more answers than 3") }
    }
  }

  private func check(_ message: Text, _ expected: String, of text: String) {
    if message.value != expected {
      self.ledger.problem("call \(text) got '\(message.value)', not '\(expected)'")
    }
  }

  private func check(_ message: Text, answers text: String) {
    guard let answer = Answer(message), answer.text == text else {
      self.ledger.problem("call \(text) got '\(message.value)'")
      return
    }
    self.ledger.callWasAnswered(at: answer.time)
  }
}
