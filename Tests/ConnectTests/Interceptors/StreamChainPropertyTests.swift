import Connect
import ConnectTesting
import NIOCore
import TestSupport
import XCTest

/// Random chains of streams do what a simple model says. Seeds are as in ``UnaryChainPropertyTests``.
final class StreamChainPropertyTests: XCTestCase {
  func testRandomChains() async {
    var generator = SeededGenerator(seed: UnaryChainPropertyTests.seed)
    for round in 0..<UnaryChainPropertyTests.rounds(1000) {
      let chain = RandomStreamChain(using: &generator)
      var model = RandomStreamChainModel(chain)
      let expected = model.run()
      let events = StageEvents()
      let run = StreamRun(chain, events, VirtualExecutor(runsTasks: false))
      let client = run.client
      let results: [String]
      switch Int.random(in: 0..<3, using: &generator) {
      case 0: results = await self.pull(client, chain)
      case 1: results = await self.listen(client, chain)
      default: results = await self.pullOnTheExecutor(client, chain, headersOf: expected)
      }
      XCTAssertEqual(results, expected, "round \(round): \(chain)")
      XCTAssertEqual(events.all, model.events, "round \(round): \(chain)")
      run.transport.virtualExecutor.runUntilIdle()
      self.checkEnds(run, events, model, expected) { "round \(round): \(chain)" }
      guard self.testRun?.failureCount == 0 else { return }
      if results != expected || events.all != model.events { return }
    }
  }

  /// Call hooks, retries with delays, transparent retries, the deadline and cancellation together, in virtual time.
  func testRandomCalls() {
    for seed in UnaryChainPropertyTests.callSeeds(UnaryChainPropertyTests.rounds(1500)) {
      var generator = SeededGenerator(quietly: seed)
      let chain = RandomStreamChain(using: &generator, isTimed: true)
      var model = RandomStreamChainModel(chain)
      let expected = model.run()
      let events = StageEvents()
      let run = StreamRun(chain, events, VirtualExecutor())
      let results = run.results(isStepwise: Bool.random(using: &generator))
      let what = { "CONNECT_CALL_SEED=\(seed): \(chain)" }

      XCTAssertEqual(results, expected, what())
      XCTAssertEqual(events.all, model.events, what())
      self.checkEnds(run, events, model, expected, what)
      XCTAssertEqual(run.attempts.value, model.call.attempts, what())
      XCTAssertLessThanOrEqual(model.call.attempts.count, 1 + chain.maximumRetries, what())
      XCTAssertEqual(run.transport.streams.count, model.call.announcements.count, what())
      XCTAssertTrue(run.transport.streams.allSatisfy(\.isOver), what())
      for stream in run.transport.streams {
        XCTAssertEqual(stream.calls.drop { $0.hasPrefix("write") }.prefix(1), ["finish"], what())
        XCTAssertEqual(stream.calls.last, stream.isCancelled ? "cancel" : "finish", what())
        XCTAssertLessThanOrEqual(stream.calls.count { !$0.hasPrefix("write") }, 2, what())
      }
      XCTAssertEqual(run.lives.names, [], what())
      guard results == expected, self.testRun?.failureCount == 0 else { return }
    }
  }

  /// Checks that each end hook was told once, and last.
  private func checkEnds(
    _ run: StreamRun,
    _ events: StageEvents,
    _ model: RandomStreamChainModel,
    _ results: [String],
    _ what: () -> String
  ) {
    let expected = RandomEnds.expected(
      run.chain.endHooks,
      String(results.last?.dropFirst("end ".count) ?? ""),
      attemptCount: model.call.attempts.count
    )
    XCTAssertEqual(run.ends.all, expected, what())
    XCTAssertEqual(run.ends.lateEvents(of: events.list), [], what())
  }

  private func pull(_ client: ProtocolClient, _ chain: RandomStreamChain) async -> [String] {
    let stream = client.bidirectionalStream(.bidirectional)
    for message in chain.messages { try? await stream.send(Text(message)) }
    stream.finish()
    var results: [String] = []
    for await result in stream.results { results.append(result.short) }
    return results
  }

  /// The messages alone, by a task that need not wait for what is there. Headers do not show.
  private func pullOnTheExecutor(
    _ client: ProtocolClient,
    _ chain: RandomStreamChain,
    headersOf expected: [String]
  ) async -> [String] {
    await Task(executorPreference: client.taskExecutor) {
      let stream = client.bidirectionalStream(.bidirectional)
      for message in chain.messages { try? await stream.send(Text(message)) }
      stream.finish()
      var results = expected.filter { $0 == "headers" }
      do {
        for try await message in stream.messages { results.append(message.text) }
        results.append("end ok")
      } catch {
        results.append("end \(ConnectError(error).code)")
      }
      return results
    }.value
  }

  private func listen(_ client: ProtocolClient, _ chain: RandomStreamChain) async -> [String] {
    let received = Signal<String>()
    let handle = client.bidirectionalStream(.bidirectional) { received.fire($0.short) }
    for message in chain.messages { handle.send(Text(message)) }
    handle.finish()
    var results: [String] = []
    while results.last?.hasPrefix("end") != true { results.append(await received.wait()) }
    return results
  }
}

/// A client with a random chain, a scripted server, and a record of what they see.
private final class StreamRun: Sendable {
  let chain: RandomStreamChain
  let transport: ScriptedTransport
  let client: ProtocolClient
  /// The numbers of the attempts of which metrics have come.
  let attempts = Box<[Int]>([])
  let ends = RandomEnds()
  let lives = Lives()

  init(_ chain: RandomStreamChain, _ events: StageEvents, _ executor: VirtualExecutor) {
    let count = Box(0)
    let script: ScriptedTransport.Script = { stream in
      stream.onFinish = { stream in
        guard !stream.isCancelled else { return }
        let messages = stream.sentMessages
        events.add("\(messages.map { String($0.dropFirst().dropLast()) })", at: "server")
        let index = (count.increment() - 1) % chain.server.count
        let reply: @Sendable () -> Void = {
          if !stream.isOver { chain.server[index].reply(to: stream, messages) }
        }
        if chain.latencies[index] > .zero {
          _ = executor.schedule(after: chain.latencies[index], reply)
        } else {
          reply()
        }
      }
    }
    let transport = ScriptedTransport(script, executor: executor)
    let measuring = TestInterceptor.make { [attempts] interceptor in
      interceptor.streamBytes.responseMetricsFunction = { metrics, proceed in
        attempts.value = attempts.value + [metrics.attempt]
        proceed(metrics)
      }
    }
    let factories = chain.interceptors.map { [ends, lives] in $0.factory(events, ends, executor, lives) }
    self.chain = chain
    self.transport = transport
    self.client = ProtocolClient.scripted(
      transport,
      interceptors: factories + [measuring],
      timeout: chain.end.flatMap { $0.isDeadline ? $0.time : nil }
    ) { $0.retries.maximumRetries = chain.maximumRetries }
  }

  /// Makes a call and lets time pass until nothing happens any more.
  ///
  /// - Parameter isStepwise: Whether the caller asks for one result at a time.
  func results(isStepwise: Bool) -> [String] {
    let executor = self.transport.virtualExecutor
    let results = Events()
    self.lives.add(results, "the callback")
    let handle = Box<StreamHandle<Text, Text>?>(nil)
    // Nothing comes before the handle is there.
    handle.value = self.client.bidirectionalStream(.bidirectional, demand: 0) { result in
      results.add(result.short)
      if isStepwise { handle.value?.request(1) }
      if case .complete = result { handle.value = nil }
    }
    if let end = self.chain.end, !end.isDeadline {
      _ = executor.schedule(after: end.time) { handle.value?.cancel() }
    }
    for message in self.chain.messages { handle.value?.send(Text(message)) }
    handle.value?.finish()
    handle.value?.request(isStepwise ? 1 : .max)
    executor.runUntilIdle()
    while executor.advanceToNext() {}
    return results.all
  }
}

extension RandomStreamChain.Server {
  fileprivate func reply(to stream: ScriptedStream, _ messages: [String]) {
    switch self {
    case .failsBeforeHeaders, .unprocessed:
      stream.fail(ConnectError(code: .aborted), isUnprocessed: self == .unprocessed)
    case .fine, .failsAtTheEnd:
      stream.respondStream()
      for message in messages { stream.sendMessage(message) }
      stream.endStream(self == .fine ? nil : .unavailable)
    }
  }
}
