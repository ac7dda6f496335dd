import Connect
import ConnectTesting
import Foundation
import NIOCore
import XCTest

/// Random chains do what a simple model says. `CONNECT_CHAIN_SEED` repeats a run.
final class UnaryChainPropertyTests: XCTestCase {
  static var seed: UInt64 {
    ProcessInfo.processInfo.environment["CONNECT_CHAIN_SEED"].flatMap { UInt64($0) }
      ?? .random(in: 0...UInt64.max)
  }

  func testRandomChains() async {
    var generator = SeededGenerator(seed: Self.seed)
    for round in 0..<3000 {
      let chain = RandomChain(using: &generator)
      var model = RandomChainModel(chain)
      let expected = model.run()
      let events = Events()
      let count = Box(0)
      let transport = ScriptedTransport { stream in
        let attempt = count.increment() - 1
        events.add("server \(attempt)")
        switch chain.server[attempt % chain.server.count] {
        case .fine: stream.reply("\"server \(attempt)\"")
        case .error: stream.reply(.unavailable, "server \(attempt)")
        case .failure: stream.fail(ConnectError(code: .aborted, message: "server \(attempt)"))
        }
      }
      let client = ProtocolClient.scripted(
        transport,
        interceptors: chain.interceptors.map { $0.factory(events, transport.virtualExecutor) }
      ) { $0.retries.maximumRetries = chain.maximumRetries }
      let response =
        Bool.random(using: &generator)
        ? await client.unary(.unary, "x") : await client.outcome(of: "x").outcome.wait()
      XCTAssertEqual(response.outcome, expected, "round \(round): \(chain)")
      XCTAssertEqual(events.all, model.events, "round \(round): \(chain)")
      if response.outcome != expected || events.all != model.events { return }
    }
  }
}

extension ResponseMessage where Output == Text {
  fileprivate var outcome: RandomOutcome {
    switch self.result {
    case .success(let text): "ok \(text.text)"
    case .failure(let error): "\(error.code) \(error.message ?? "")"
    }
  }

  fileprivate init(outcome: RandomOutcome) {
    let parts = outcome.split(separator: " ", maxSplits: 1).map(String.init)
    if parts[0] == "ok" {
      self.init(message: Text(parts[1]))
    } else {
      self.init(
        error: ConnectError(code: parts[0] == "internal" ? .internalError : .dataLoss, message: parts[1])
      )
    }
  }
}

extension HTTPResponse {
  fileprivate var outcome: RandomOutcome {
    if let error = self.error { return "\(error.code) \(error.message ?? "")" }
    return "ok \(String(buffer: self.message).dropFirst().dropLast())"
  }

  fileprivate init(outcome: RandomOutcome) {
    let response = ResponseMessage<Text>(outcome: outcome)
    switch response.result {
    case .success(let text): self.init(message: ByteBuffer(string: "\"\(text.text)\""))
    case .failure(let error): self.init(error: error)
    }
  }
}

/// Counts visits by name.
private final class Visits: Sendable {
  private let counts = Box<[String: Int]>([:])

  func next(_ name: String) -> Int {
    var counts = self.counts.value
    defer { self.counts.value = counts }
    counts[name, default: 0] += 1
    return (counts[name] ?? 1) - 1
  }
}

extension RandomChain.Timing {
  func run(on executor: VirtualExecutor, _ work: @escaping @Sendable () -> Void) {
    switch self {
    case .atOnce: work()
    case .later: executor.execute(work)
    case .elsewhere: Task.detached { work() }
    }
  }
}

extension RandomChain.Interceptor {
  fileprivate func factory(_ events: Events, _ executor: VirtualExecutor) -> InterceptorFactory {
    { _ in
      let visits = Visits()
      var hooks = TestInterceptor()
      if case .hooks(let script)? = self.messages?.kind, let name = self.messages?.name {
        hooks.unaryMessages = script.functions(name, events, visits, executor, describe: \.outcome) {
          ResponseMessage(outcome: $0)
        }
      }
      if case .hooks(let script)? = self.bytes?.kind, let name = self.bytes?.name {
        hooks.unaryBytes = script.functions(name, events, visits, executor, describe: \.outcome) {
          HTTPResponse(outcome: $0)
        }
      }
      guard case .async(let script)? = self.async?.kind, let name = self.async?.name else { return hooks }
      return Both(hooks: hooks, script: script, name: name, events: events)
    }
  }
}

/// An interceptor in all three forms.
private struct Both: AsyncUnaryInterceptor, @unchecked Sendable {
  // Never changed, and its hooks are called on the call's executor only.
  let hooks: TestInterceptor
  let script: RandomChain.Async
  let name: String
  let events: Events

  func unaryFunction() -> UnaryFunction { self.hooks.unaryFunction() }

  func unaryMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> UnaryMessageFunction<Input, Output> {
    self.hooks.unaryMessageFunction(method)
  }

  func interceptUnary<Input, Output>(
    _ request: HTTPRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: UnaryNext<Input, Output>
  ) async throws -> ResponseMessage<Output> {
    self.events.add("\(self.name) request")
    await Task.yield()
    switch self.script {
    case .fail: throw ConnectError(code: .internalError, message: self.name)
    case .answer:
      return try XCTUnwrap(ResponseMessage<Text>(outcome: "ok \(self.name)") as? ResponseMessage<Output>)
    case .pass, .replace, .retry: break
    }
    var response = try await next(request)
    if case .retry(let count) = self.script {
      for _ in 0..<count where response.error != nil { response = try await next(request) }
    }
    let outcome = try XCTUnwrap(response as? ResponseMessage<Text>).outcome
    self.events.add("\(self.name) response \(outcome)")
    if case .replace = self.script {
      return ResponseMessage(error: ConnectError(code: .dataLoss, message: self.name))
    }
    return response
  }
}

extension RandomChain.Hooks {
  fileprivate func functions<Message: Sendable, Response: Sendable>(
    _ name: String,
    _ events: Events,
    _ visits: Visits,
    _ executor: VirtualExecutor,
    describe: @escaping @Sendable (Response) -> RandomOutcome,
    make: @escaping @Sendable (RandomOutcome) -> Response
  ) -> UnaryHooks<Message, Response> {
    UnaryHooks(
      requestFunction: { request, proceed in
        events.add("\(name) request")
        let action = self.requests[visits.next("request \(name)") % self.requests.count]
        self.timing.run(on: executor) {
          switch action {
          case .pass: proceed(.success(request))
          case .fail: proceed(.failure(ConnectError(code: .internalError, message: name)))
          case .answer: proceed.answer(make("ok \(name)"))
          }
        }
      },
      responseFunction: { response, proceed in
        events.add("\(name) response \(describe(response))")
        let action = self.responses[visits.next("response \(name)") % self.responses.count]
        self.timing.run(on: executor) {
          switch action {
          case .pass: proceed(response)
          case .error: proceed(make("data_loss \(name)"))
          case .response: proceed(make("ok \(name)"))
          case .retry: proceed.retry()
          }
        }
      }
    )
  }
}
