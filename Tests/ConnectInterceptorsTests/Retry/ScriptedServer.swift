import Connect
import ConnectTesting
import LoopbackServer
import NIOCore
import SwiftProtobuf
import Synchronization
import XCTest

/// A server in memory and in virtual time that answers attempts as a script says. It keeps what came.
final class ScriptedServer: Sendable {
  typealias Request = Connect_Test_V1_EchoRequest
  typealias Response = Connect_Test_V1_EchoResponse
  typealias Method = MethodSpec<Request, Response>
  /// Called with the number of the attempt, from 1, before anything is sent. What it throws fails the attempt.
  typealias Script = @Sendable (Int, ServerContext) async throws -> Void

  struct Attempt {
    var time: Duration
    var headers: Headers
    var messages: [String] = []
  }

  static let path = "/scripted.Service/"

  static func method(
    _ streamType: StreamType = .unary,
    _ idempotencyLevel: IdempotencyLevel = .idempotent
  ) -> Method {
    Method(path: "\(Self.path)\(streamType)", streamType: streamType, idempotencyLevel: idempotencyLevel)
  }

  let executor = VirtualExecutor()
  let transport: InMemoryTransport
  private let log = Mutex<[Attempt]>([])

  /// - Parameter messagesBeforeFailure: How many messages a stream that answers with several sends before it fails.
  init(messagesBeforeFailure: Int = 0, sendsHeadersFirst: Bool = false, _ script: @escaping Script) {
    self.transport = InMemoryTransport(executor: self.executor)
    self.transport.onUnary(Self.method(.unary)) { request, context in
      try await self.attempt(context, request, script: script)
      return Self.response(request)
    }
    self.transport.onServerStream(Self.method(.serverStream)) { request, responses, context in
      if sendsHeadersFirst { try await context.sendHeaders() }
      for _ in 0..<messagesBeforeFailure { try await responses.send(Self.response(request)) }
      try await self.attempt(context, request, script: script)
      try await responses.send(Self.response(request))
    }
    self.transport.onClientStream(Self.method(.clientStream)) { requests, context in
      let index = self.begin(context)
      var last = Request()
      for try await request in requests {
        self.log.withLock { $0[index].messages.append(request.payload.text) }
        last = request
      }
      try await script(index + 1, context)
      return Self.response(last)
    }
    self.transport.onBidirectionalStream(Self.method(.bidirectionalStream)) { requests, responses, context in
      let index = self.begin(context)
      for try await request in requests {
        self.log.withLock { $0[index].messages.append(request.payload.text) }
        try await script(index + 1, context)
        try await responses.send(Self.response(request))
      }
    }
  }

  /// One whose first attempts fail, each with one of these errors.
  convenience init(failing errors: ConnectError..., sendsHeadersFirst: Bool = false) {
    self.init(sendsHeadersFirst: sendsHeadersFirst) { number, _ in
      if number <= errors.count { throw errors[number - 1] }
    }
  }

  private static func response(_ request: Request) -> Response {
    .with { $0.payload.text = request.payload.text }
  }

  private func begin(_ context: ServerContext) -> Int {
    let attempt = Attempt(time: self.executor.now, headers: context.requestHeaders)
    return self.log.withLock { log in
      log.append(attempt)
      return log.count - 1
    }
  }

  private func attempt(_ context: ServerContext, _ request: Request, script: Script) async throws {
    let index = self.begin(context)
    self.log.withLock { $0[index].messages.append(request.payload.text) }
    try await script(index + 1, context)
  }

  /// What came so far, oldest first.
  var attempts: [Attempt] { self.log.withLock { $0 } }

  func client(
    over networkProtocol: NetworkProtocol = .connect,
    timeout: Duration? = nil,
    retries: Int = 10,
    _ interceptors: InterceptorFactory...
  ) -> ProtocolClient {
    ProtocolClient(
      httpClient: self.transport,
      config: ProtocolClientConfig(
        host: "http://scripted.test",
        networkProtocol: networkProtocol,
        interceptors: interceptors,
        timeout: timeout,
        retries: .init(maximumRetries: retries)
      )
    )
  }

  /// Makes a unary call, and lets as much virtual time pass as it needs.
  func call(
    _ client: ProtocolClient,
    _ text: String = "x",
    idempotencyLevel: IdempotencyLevel = .idempotent,
    options: CallOptions = CallOptions()
  ) async throws -> ResponseMessage<Response> {
    try await self.executor.lettingTimePass {
      await client.unary(Self.method(.unary, idempotencyLevel), .text(text), options: options)
    }
  }

  /// Reads a server stream to its end.
  func stream(
    _ client: ProtocolClient,
    _ text: String = "x",
    options: CallOptions = CallOptions()
  ) async throws -> CollectedStream<Response> {
    try await self.executor.lettingTimePass {
      try await client.serverStream(Self.method(.serverStream), .text(text), options: options).results
        .collected()
    }
  }
}

extension Connect_Test_V1_EchoRequest {
  static func text(_ text: String) -> Self { .with { $0.payload.text = text } }
}

extension ConnectError {
  static let away = ConnectError(code: .unavailable, message: "away")

  static func away(_ metadata: Headers) -> ConnectError {
    ConnectError(code: .unavailable, message: "away", metadata: metadata)
  }

  /// With `google.rpc.RetryInfo`.
  static func away(retryInfo seconds: Int64, nanos: Int32 = 0) throws -> ConnectError {
    let delay = Google_Protobuf_Duration.with {
      $0.seconds = seconds
      $0.nanos = nanos
    }
    let bytes: [UInt8] = try delay.serializedBytes()
    let info = ByteBuffer(bytes: [0x0a, UInt8(bytes.count)] + bytes)
    return ConnectError(
      code: .unavailable,
      message: "away",
      details: [.init(type: "google.rpc.RetryInfo", value: info)]
    )
  }
}
