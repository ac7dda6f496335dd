internal import Connect
internal import LoopbackServer
internal import NIOCore
internal import NIOPosix
internal import SwiftProtobuf
import XCTest

/// Chains of closure and async interceptors around real calls, with retries.
final class InterceptorTests: XCTestCase {
  /// Closure, async, closure: A and B see messages, C and D see bytes, and D asks for retries.
  private func chain(_ log: Recorder<String>) -> [InterceptorFactory] {
    [
      { _ in ClosureInterceptor(name: "A", level: .messages, log: log) },
      { _ in AsyncInterceptor(name: "B", log: log) },
      { _ in ClosureInterceptor(name: "C", level: .bytes, log: log) },
      { _ in ClosureInterceptor(name: "D", level: .bytes, retries: true, log: log) },
    ]
  }

  /// Counts the starts of a call, and asks for two more when the server is away.
  private final class StartingAgain: Interceptor {
    private let log: Recorder<String>
    private var starts = 0

    init(_ log: Recorder<String>) { self.log = log }

    func callFunction(_ method: MethodInfo) -> CallFunction {
      CallFunction(
        requestFunction: { request in
          self.starts += 1
          request.headers["x-start"] = ["\(self.starts)"]
        },
        outcomeFunction: { outcome in self.log.record("\(outcome.code) after \(outcome.attempts)") }
      )
    }

    func unaryFunction() -> UnaryFunction {
      UnaryFunction(updateResponse: { response in
        response.code == .unavailable ? .restart(after: .milliseconds(1)) : .proceed
      })
    }
  }

  func testRetryFromTheStart() async throws {
    for version in Version.allCases {
      let log = Recorder<String>()
      try await EmbeddedServer.run(version, interceptors: [{ _ in StartingAgain(log) }]) { embedded in
        embedded.server.onRaw("/flaky") { request, responder in
          let body = try await request.body()
          log.record("start \(request.record.headers.first("x-start") ?? "-")")
          if request.attempt < 2 {
            try await responder.respond(status: 503, text: "later")
          } else {
            try await responder.respond(headers: ["content-type": "application/proto"], body: body)
          }
        }
        let response = await embedded.client.unary(unaryMethod("/flaky"), .with { $0.payload.text = "x" })
        XCTAssertEqual(response.message?.payload.text, "x", "\(version.rawValue): \(response)")
        XCTAssertEqual(log.values, ["start 1", "start 2", "start 3", "ok after 3"], "\(version.rawValue)")
      }
    }
  }

  /// Two answers of 503, then the right one.
  func testRetryOfAUnaryCall() async throws {
    for version in Version.allCases {
      let log = Recorder<String>()
      try await EmbeddedServer.run(version, interceptors: self.chain(log)) { embedded in
        embedded.server.onRaw("/flaky") { request, responder in
          let body = try await request.body()
          if request.attempt < 2 {
            try await responder.respond(status: 503, text: "later")
          } else {
            try await responder.respond(headers: ["content-type": "application/proto"], body: body)
          }
        }
        let response = await embedded.client.unary(unaryMethod("/flaky"), .with { $0.payload.text = "x" })
        XCTAssertEqual(response.message?.payload.text, "x", "\(version.rawValue): \(response)")
        XCTAssertEqual(
          log.values,
          [
            "A ▼", "B ▼", "C ▼", "D ▼", "D ▲ unavailable", "C ▼", "D ▼", "D ▲ unavailable", "C ▼", "D ▼",
            "D ▲ ok",
            "C ▲ ok", "B ▲ ok", "A ▲ ok",
          ],
          version.rawValue
        )
        let requests = embedded.server.requests
        XCTAssertEqual(requests.count, 3, version.rawValue)
        for request in requests {
          XCTAssertEqual(request.headers["x-seen-by"].sorted(), ["A", "B", "C", "D"], version.rawValue)
        }
        XCTAssertEqual(embedded.server.journal.snapshot.acceptedConnections, 1, version.rawValue)
      }
    }
  }

  /// Cancelling what the event loop has scheduled releases the `proceed` in it while the loop's lock is held.
  func testAProceedThatIsReleasedByTheEventLoop() async throws {
    let letGo: InterceptorFactory = { _ in
      HookInterceptor { _, proceed in
        guard let loop = MultiThreadedEventLoopGroup.currentEventLoop else { return }
        let scheduled = loop.scheduleTask(in: .hours(1)) { proceed(.failure(ConnectError(code: .aborted))) }
        loop.execute { scheduled.cancel() }
      }
    }
    try await EmbeddedServer.run(.http2, interceptors: [letGo]) { embedded in
      for _ in 0..<20 {
        let response = await embedded.client.unary(TestMethods.echo, .init())
        XCTAssertEqual(response.error?.code, .internalError)
        XCTAssertEqual(response.error?.message?.contains("let go of proceed"), true, "\(response)")
      }
    }
  }

  /// The cap: the last real error passes on.
  func testRetryWithoutSuccess() async throws {
    for version in Version.allCases {
      let log = Recorder<String>()
      try await EmbeddedServer.run(version, interceptors: self.chain(log)) { embedded in
        let request = EchoRequest.with {
          $0.instruction.failure.code = .unavailable
          $0.instruction.failure.message = "never"
        }
        let response = await embedded.client.unary(TestMethods.echo, request)
        ExpectedError(.unavailable, "never").check(response.error, version.rawValue)
        XCTAssertEqual(embedded.server.requests.count, 4, version.rawValue)
        XCTAssertEqual(
          log.values.suffix(4),
          ["D ▲ unavailable", "C ▲ unavailable", "B ▲ unavailable", "A ▲ unavailable"]
        )
      }
    }
  }

  /// An async interceptor that calls `next` again.
  func testRetryByAnAsyncInterceptor() async throws {
    for version in Version.allCases {
      let log = Recorder<String>()
      try await EmbeddedServer.run(
        version,
        interceptors: [
          { _ in ClosureInterceptor(name: "A", level: .messages, log: log) },
          { _ in AsyncInterceptor(name: "B", retries: true, log: log) },
          { _ in ClosureInterceptor(name: "C", level: .bytes, log: log) },
        ]
      ) { embedded in
        embedded.server.onRaw("/flaky") { request, responder in
          let body = try await request.body()
          let headers: HeaderFields = ["content-type": "application/proto"]
          if request.attempt == 0 { return try await responder.respond(status: 503, text: "later") }
          try await responder.respond(headers: headers, body: body)
        }
        let response = await embedded.client.unary(unaryMethod("/flaky"), .with { $0.payload.text = "x" })
        XCTAssertEqual(response.message?.payload.text, "x", "\(version.rawValue): \(response)")
        XCTAssertEqual(
          log.values,
          ["A ▼", "B ▼", "C ▼", "C ▲ unavailable", "C ▼", "C ▲ ok", "B ▲ ok", "A ▲ ok"],
          version.rawValue
        )
      }
    }
  }

  /// The request's messages are sent again.
  func testRetryOfAStream() async throws {
    for version in Version.allCases {
      let log = Recorder<String>()
      try await EmbeddedServer.run(version, interceptors: self.chain(log)) { embedded in
        embedded.server.onRaw("/flaky") { request, responder in
          let body = try await request.body()
          if request.attempt < 2 { return try await responder.respond(status: 503, text: "later") }
          var answer = body
          answer.writeBytes([2, 0, 0, 0, 2])
          answer.writeString("{}")
          try await responder.respond(headers: ["content-type": "application/connect+proto"], body: answer)
        }
        let method = MethodSpec<ConverseRequest, ConverseRequest>(
          path: "/flaky",
          streamType: .bidirectionalStream
        )
        let stream = embedded.client.bidirectionalStream(method)
        for text in ["a", "b", "c"] { try await stream.send(.with { $0.payload.text = text }) }
        stream.finish()
        let outcome = await stream.results.collect()
        XCTAssertEqual(outcome.code, .ok, "\(version.rawValue): \(outcome)")
        XCTAssertEqual(outcome.messages.map(\.payload.text), ["a", "b", "c"], version.rawValue)
        XCTAssertEqual(outcome.headers.count, 1, version.rawValue)
        XCTAssertEqual(embedded.server.requests.count, 3, version.rawValue)
        XCTAssertEqual(log.values.count { $0 == "A ▼" }, 1, version.rawValue)
        XCTAssertEqual(log.values.count { $0 == "B ▼" }, 1, version.rawValue)
        XCTAssertEqual(log.values.count { $0 == "D ▼" }, 3, version.rawValue)
        XCTAssertEqual(log.values.count { $0 == "A ▲ unavailable" }, 0, version.rawValue)
        XCTAssertEqual(log.values.last, "A ▲ ok", version.rawValue)
      }
    }
  }

  /// Against both servers, the chain changes nothing but adds its headers.
  func testEachKindOfCallThroughTheChain() async throws {
    for setting in Setting.all {
      let log = Recorder<String>()
      try await setting.withClient(interceptors: self.chain(log)) { client in
        let unary = await client.unary(TestMethods.echo, .with { $0.payload.text = "x" })
        XCTAssertEqual(unary.message?.payload.text, "x", "\(setting): \(unary)")
        XCTAssertEqual(unary.message?.seen.values("x-seen-by"), ["A", "B", "C", "D"], "\(setting)")

        let stream = client.serverStream(TestMethods.count, .with { $0.instruction.messageCount = 50 })
        let count = await stream.results.collect()
        XCTAssertEqual(count.messages.map(\.number), Array(0..<50), "\(setting): \(count)")
        XCTAssertEqual(count.messages.first?.seen.values("x-seen-by"), ["A", "B", "C", "D"], "\(setting)")

        let sum = client.clientStream(TestMethods.sum)
        for number in 1...50 { try await sum.send(.with { $0.number = Int64(number) }) }
        let summed = await sum.closeAndReceive()
        XCTAssertEqual(summed.message?.sum, 1275, "\(setting): \(summed)")

        let converse = client.bidirectionalStream(TestMethods.converse)
        for text in ["a", "b"] { try await converse.send(.with { $0.payload.text = text }) }
        converse.finish()
        let conversed = await converse.results.collect()
        XCTAssertEqual(conversed.messages.map(\.payload.text), ["a", "b"], "\(setting): \(conversed)")
      }
    }
  }

  /// Cancelling and the deadline reach through hooks that never proceed.
  func testHooksThatNeverProceed() async throws {
    for version in Version.allCases {
      try await EmbeddedServer.run(version, interceptors: [{ _ in Silent() }]) { embedded in
        let options = CallOptions(timeout: .milliseconds(50))
        let response = await embedded.client.unary(TestMethods.echo, EchoRequest(), options: options)
        XCTAssertEqual(response.code, .deadlineExceeded, version.rawValue)
        let stream = embedded.client.serverStream(TestMethods.count, CountRequest())
        stream.cancel()
        let outcome = await stream.results.collect()
        XCTAssertEqual(outcome.code, .canceled, version.rawValue)
        XCTAssertEqual(embedded.server.requests.count, 0, version.rawValue)
      }
    }
  }
}

/// Notes what passes, adds its name to the headers, and proceeds on another thread.
private final class ClosureInterceptor: Interceptor {
  enum Level {
    case messages, bytes
  }

  private let name: String
  private let level: Level
  private let retries: Bool
  private let log: Recorder<String>
  private var held: (() -> Void)?

  init(name: String, level: Level, retries: Bool = false, log: Recorder<String>) {
    self.name = name
    self.level = level
    self.retries = retries
    self.log = log
  }

  private func down<Message>(
    _ request: HTTPRequest<Message>,
    _ proceed: @escaping @Sendable (HTTPRequest<Message>) -> Void
  ) {
    self.log.record("\(self.name) ▼")
    var request = request
    request.headers.add(name: "x-seen-by", value: self.name)
    let changed = request
    Task { proceed(changed) }
  }

  /// Whether to try once more.
  private func up(_ code: Code) -> Bool {
    self.log.record("\(self.name) ▲ \(code)")
    return self.retries && code == .unavailable
  }

  func unaryFunction() -> UnaryFunction {
    guard self.level == .bytes else { return UnaryFunction() }
    return UnaryFunction(
      requestFunction: { request, proceed in self.down(request) { proceed(.success($0)) } },
      responseFunction: { response, proceed in
        if self.up(response.code) { proceed.retry(after: .milliseconds(1)) } else { proceed(response) }
      }
    )
  }

  func streamFunction() -> StreamFunction {
    guard self.level == .bytes else { return StreamFunction() }
    return StreamFunction(
      requestFunction: { request, proceed in self.down(request) { proceed(.success($0)) } },
      streamResultFunction: { result, proceed in
        // What has gone out cannot be taken back by a retry, so the headers wait for what follows.
        if self.retries, case .headers = result {
          self.held = { proceed(result) }
        } else if case .complete(let code, _, _) = result, self.up(code) {
          self.held = nil
          proceed.retry(after: .milliseconds(1))
        } else {
          self.held?()
          self.held = nil
          proceed(result)
        }
      }
    )
  }

  func unaryMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> UnaryMessageFunction<Input, Output> {
    guard self.level == .messages else { return UnaryMessageFunction() }
    return UnaryMessageFunction(
      requestFunction: { request, proceed in self.down(request) { proceed(.success($0)) } },
      responseFunction: { response, proceed in
        _ = self.up(response.code)
        Task { proceed(response) }
      }
    )
  }

  func streamMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> StreamMessageFunction<Input, Output> {
    guard self.level == .messages else { return StreamMessageFunction() }
    return StreamMessageFunction(
      requestFunction: { request, proceed in self.down(request) { proceed(.success($0)) } },
      requestMessageFunction: { message, proceed in Task { proceed(message) } },
      streamResultFunction: { result, proceed in
        if case .complete(let code, _, _) = result { _ = self.up(code) }
        Task { proceed(result) }
      }
    )
  }
}

/// The same in the async form.
private struct AsyncInterceptor: AsyncUnaryInterceptor, AsyncStreamInterceptor {
  var name: String
  var retries = false
  var log: Recorder<String>

  func interceptUnary<Input, Output>(
    _ request: HTTPRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: UnaryNext<Input, Output>
  ) async throws -> ResponseMessage<Output> {
    self.log.record("\(self.name) ▼")
    var request = request
    request.headers.add(name: "x-seen-by", value: self.name)
    var response = try await next(request)
    if self.retries, response.code == .unavailable { response = try await next(request) }
    self.log.record("\(self.name) ▲ \(response.code)")
    return response
  }

  func interceptStream<Input, Output>(
    _ request: StreamRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: StreamNext<Input, Output>
  ) async throws -> StreamResponse<Output> {
    self.log.record("\(self.name) ▼")
    var request = request
    request.head.headers.add(name: "x-seen-by", value: self.name)
    return try await next(request)
  }
}

/// Never calls `proceed`, and keeps it.
private final class Silent: Interceptor {
  private var unary: UnaryFunction.RequestProceed?
  private var stream: StreamFunction.RequestProceed?

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(requestFunction: { _, proceed in self.unary = proceed })
  }

  func streamFunction() -> StreamFunction {
    StreamFunction(requestFunction: { _, proceed in self.stream = proceed })
  }
}

/// An interceptor with one hook.
private struct HookInterceptor: Interceptor {
  let hook: @Sendable (HTTPRequest<ByteBuffer>, UnaryFunction.RequestProceed) -> Void

  func unaryFunction() -> UnaryFunction { UnaryFunction(requestFunction: self.hook) }
}
