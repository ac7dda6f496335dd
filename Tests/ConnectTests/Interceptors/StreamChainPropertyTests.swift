import Connect
import ConnectTesting
import NIOCore
import TestSupport
import XCTest

/// Random chains of streams do what a simple model says. Seeds are as in ``UnaryChainPropertyTests``.
final class StreamChainPropertyTests: XCTestCase {
  func testRandomChains() async {
    var generator = SeededGenerator(seed: UnaryChainPropertyTests.seed)
    for round in 0..<1000 {
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
      if results != expected || events.all != model.events { return }
    }
  }

  /// Call hooks, retries with delays, transparent retries, the deadline and cancellation together, in virtual time.
  func testRandomCalls() {
    for seed in UnaryChainPropertyTests.callSeeds(1500) {
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
    self.chain = chain
    self.transport = transport
    self.client = ProtocolClient.scripted(
      transport,
      interceptors: chain.interceptors.map { [lives] in $0.factory(events, executor, lives) } + [measuring],
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

/// What each stage saw, in order.
private final class StageEvents: Sendable {
  private let events: Events

  init() { self.events = Events() }

  /// The same events, for one interceptor.
  init(of other: StageEvents) { self.events = other.events }

  func add(_ event: String, at stage: String) { self.events.add("\(stage)|\(event)") }

  var all: [String: [String]] {
    Dictionary(grouping: self.events.all.map { $0.split(separator: "|", maxSplits: 1).map(String.init) }) {
      $0[0]
    }
    .mapValues { $0.map { $0[1] } }
  }
}

extension RandomStreamChain.Interceptor {
  /// - Parameter lives: Is told of something that lives as long as the hooks.
  fileprivate func factory(
    _ allEvents: StageEvents,
    _ executor: VirtualExecutor,
    _ lives: Lives
  ) -> InterceptorFactory {
    { _ in
      let events = StageEvents(of: allEvents)
      lives.add(events, "interceptor")
      var hooks = TestInterceptor()
      if let call = self.call { hooks.call = call.function { events.add($0, at: "calls") } }
      if case .hooks(let script)? = self.messages?.kind, let name = self.messages?.name {
        hooks.streamMessages = script.functions(name, events, executor, describe: \.short, text: \.text) {
          Text($0)
        }
      }
      if case .hooks(let script)? = self.bytes?.kind, let name = self.bytes?.name {
        hooks.streamBytes = script.functions(
          name,
          events,
          executor,
          describe: { $0.message.map { String(String(buffer: $0).dropFirst().dropLast()) } ?? $0.short },
          text: { String(String(buffer: $0).dropFirst().dropLast()) },
          make: { ByteBuffer(string: "\"\($0)\"") }
        )
      }
      guard case .async(let script)? = self.async?.kind, let name = self.async?.name else { return hooks }
      return Both(hooks: hooks, script: script, name: name, events: events)
    }
  }
}

extension RandomStreamChain.Hooks {
  fileprivate func functions<Message: Sendable>(
    _ name: String,
    _ events: StageEvents,
    _ executor: VirtualExecutor,
    describe: @escaping @Sendable (StreamResult<Message>) -> String,
    text: @escaping @Sendable (Message) -> String,
    make: @escaping @Sendable (String) -> Message
  ) -> StreamHooks<Message, Message> {
    var heads = 0
    var ends = 0
    var requests = 0
    var results = 0
    return StreamHooks(
      requestFunction: { request, proceed in
        events.add("head", at: name)
        let action = self.heads[heads % self.heads.count]
        heads += 1
        requests = 0
        results = 0
        self.timing.run(on: executor) {
          switch action {
          case .pass: proceed(.success(request))
          case .fail: proceed(.failure(ConnectError(code: .internalError)))
          case .answer: proceed.answer(StreamAnswer(messages: [make(name)]))
          }
        }
      },
      requestMessageFunction: { message, proceed in
        let action = self.requests[requests % self.requests.count]
        requests += 1
        self.timing.run(on: executor) {
          switch action {
          case .pass: proceed(message)
          case .change: proceed(make(text(message) + ">"))
          case .drop: proceed.drop()
          }
        }
      },
      streamResultFunction: { result, proceed in
        events.add(describe(result), at: name)
        switch result {
        case .headers:
          self.timing.run(on: executor) { proceed.drop() }
        case .message(let message):
          let action = self.results[results % self.results.count]
          results += 1
          self.timing.run(on: executor) {
            switch action {
            case .pass: proceed(result)
            case .change: proceed(.message(make(text(message) + "<")))
            case .drop: proceed.drop()
            }
          }
        case .complete:
          let action = self.ends[ends % self.ends.count]
          ends += 1
          self.timing.run(on: executor) {
            switch action {
            case .pass: proceed(result)
            case .error: proceed(.failed(ConnectError(code: .dataLoss)))
            case .fine: proceed(.complete(code: .ok, error: nil, trailers: Headers()))
            case .message: proceed(.message(make(name)))
            case .retry: proceed.retry()
            case .retryLater: proceed.retry(after: .seconds(1))
            }
          }
        }
      }
    )
  }
}

/// An interceptor in all three forms.
private struct Both: AsyncStreamInterceptor, @unchecked Sendable {
  // Never changed, and its hooks are called on the call's executor only.
  let hooks: TestInterceptor
  let script: RandomChain.Async
  let name: String
  let events: StageEvents

  func callFunction(_ method: MethodInfo) -> CallFunction { self.hooks.callFunction(method) }
  func streamFunction() -> StreamFunction { self.hooks.streamFunction() }

  func streamMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> StreamMessageFunction<Input, Output> {
    self.hooks.streamMessageFunction(method)
  }

  func interceptStream<Input, Output>(
    _ request: StreamRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: StreamNext<Input, Output>
  ) async throws -> StreamResponse<Output> {
    guard let request = request as? StreamRequest<Text>, let next = next as? StreamNext<Text, Text>,
      let response = try await self.intercept(request, next) as? StreamResponse<Output>
    else { throw ConnectError(code: .unimplemented) }
    return response
  }

  private func intercept(
    _ request: StreamRequest<Text>,
    _ next: StreamNext<Text, Text>
  ) async throws -> StreamResponse<Text> {
    self.events.add("head", at: self.name)
    await Task.yield()
    let recorded: @Sendable (StreamResponse<Text>) -> StreamResponse<Text> = { response in
      StreamResponse(
        results: response.results.mapped { result in
          self.events.add(result.short, at: self.name)
          return result
        }
      )
    }
    switch self.script {
    case .fail:
      throw ConnectError(code: .internalError)
    case .answer:
      return StreamResponse(StreamAnswer(messages: [Text(self.name)]))
    case .pass:
      return recorded(try await next(request))
    case .replace:
      return recorded(try await next(request)).map { Text($0.text + "~") }
    case .retry(let count):
      var response = try await next(request)
      var first = try await response.results.first { _ in true }
      for _ in 0..<count {
        guard case .complete(.aborted, let error?, _)? = first else { break }
        do {
          response = try await next(request)
        } catch {
          break
        }
        first = try await response.results.first { _ in true }
        _ = error
      }
      return recorded(
        StreamResponse(results: PulledSequence([first].compactMap { $0 }).followed(by: response.results))
      )
    }
  }
}
