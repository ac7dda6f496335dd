import Connect
import ConnectTesting
import LoopbackServer
import SwiftProtobuf
import Synchronization

/// The test service in memory and in virtual time, and a client of it with the interceptors of a test.
///
/// `Echo` answers what it is asked, after a second. A text that begins with `fail:` names the code to fail with;
/// `flaky` fails with `unavailable` the first time.
struct ObservedService: Sendable {
  let executor = VirtualExecutor()
  let transport: InMemoryTransport
  private let networkProtocol: NetworkProtocol
  private let seen = Seen()

  private final class Seen: Sendable {
    let headers = Mutex<[Headers]>([])
  }

  init(_ networkProtocol: NetworkProtocol = .connect) {
    self.networkProtocol = networkProtocol
    self.transport = InMemoryTransport(executor: self.executor)
    let seen = self.seen
    self.transport.onUnary(TestMethods.echo) { request, context in
      let count = seen.headers.withLock { headers in
        headers.append(context.requestHeaders)
        return headers.count
      }
      try await context.sleep(for: .seconds(1))
      let text = request.payload.text
      if let code = text.split(separator: ":").dropFirst().first.flatMap({ Code(name: String($0)) }) {
        throw ConnectError(code: code, message: "as asked", metadata: ["x-failed": ["yes"]])
      }
      if text == "flaky", count == 1 { throw ConnectError(code: .unavailable, message: "not yet") }
      context.responseHeaders["set-cookie"] = ["session=secret"]
      context.responseTrailers["x-cost"] = ["3"]
      return .with { $0.payload.text = text }
    }
    self.transport.onBidirectionalStream(TestMethods.converse) { requests, responses, context in
      let count = seen.headers.withLock { headers in
        headers.append(context.requestHeaders)
        return headers.count
      }
      for try await request in requests {
        if request.payload.text == "flaky", count == 1 { throw ConnectError(code: .unavailable) }
        try await context.sleep(for: .seconds(1))
        try await responses.send(.with { $0.payload.text = request.payload.text })
      }
    }
  }

  /// The headers of the requests that have arrived.
  var requestHeaders: [Headers] { self.seen.headers.withLock { $0 } }

  func client(
    host: String = "http://service.test:8080",
    compression: Compression = .defaults,
    _ interceptors: InterceptorFactory...
  ) -> ProtocolClient {
    ProtocolClient(
      httpClient: self.transport,
      config: ProtocolClientConfig(
        host: host,
        networkProtocol: self.networkProtocol,
        interceptors: interceptors,
        compression: compression
      )
    )
  }

  /// Calls `Echo`; virtual time passes as fast as it can.
  @discardableResult
  func echo(
    _ text: String,
    by client: ProtocolClient,
    options: CallOptions = CallOptions()
  ) async throws -> ResponseMessage<Connect_Test_V1_EchoResponse> {
    try await self.executor.lettingTimePass {
      await client.unary(TestMethods.echo, .with { $0.payload.text = text }, options: options)
    }
  }

  /// Sends texts to `Converse` and reads its answers to the end.
  @discardableResult
  func converse(
    _ texts: [String],
    by client: ProtocolClient,
    options: CallOptions = CallOptions()
  ) async throws -> CollectedStream<Connect_Test_V1_ConverseResponse> {
    try await self.executor.lettingTimePass {
      let stream = client.bidirectionalStream(TestMethods.converse, options: options)
      for text in texts { try await stream.send(.with { $0.payload.text = text }) }
      stream.finish()
      return try await stream.results.collected()
    }
  }
}

/// Asks for another attempt when the service is away, after two seconds: at its level, or at the start of the call.
struct RetryWhenUnavailable: Interceptor {
  enum Level: CaseIterable { case messages, bytes, start }

  var level = Level.bytes

  func unaryFunction() -> UnaryFunction {
    guard self.level != .messages else { return UnaryFunction() }
    return UnaryFunction(responseFunction: { response, proceed in
      if response.code == .unavailable {
        proceed.retry(after: .seconds(2), from: self.level == .start ? .start : .level)
      } else {
        proceed(response)
      }
    })
  }

  func streamFunction() -> StreamFunction {
    guard self.level == .bytes else { return StreamFunction() }
    // Headers that have gone out rule out another attempt, so they wait for the first message.
    var passHeaders: (() -> Void)?
    return StreamFunction(streamResultFunction: { result, proceed in
      switch result {
      case .headers:
        passHeaders = { proceed(result) }
      case .complete(.unavailable, _, _):
        passHeaders = nil
        proceed.retry(after: .seconds(2))
      case .message, .complete:
        passHeaders?()
        passHeaders = nil
        proceed(result)
      }
    })
  }

  func unaryMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> UnaryMessageFunction<Input, Output> {
    guard self.level == .messages else { return UnaryMessageFunction() }
    return UnaryMessageFunction(responseFunction: { response, proceed in
      if response.code == .unavailable { proceed.retry(after: .seconds(2)) } else { proceed(response) }
    })
  }
}

/// What was noted, from any thread.
final class Noted<Value: Sendable>: Sendable {
  private let state = Mutex<[Value]>([])

  var value: [Value] { self.state.withLock { $0 } }

  func add(_ value: Value) { self.state.withLock { $0.append(value) } }
}
