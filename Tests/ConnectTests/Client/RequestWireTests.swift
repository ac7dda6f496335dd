import NIOCore
import Synchronization
import XCTest

@testable import Connect

/// What requests look like on the wire: GET, compression, limits, and the three protocols.
final class RequestWireTests: XCTestCase {
  private static let read = TextMethod(
    codablePath: "/test.Text/Read",
    streamType: .unary,
    idempotencyLevel: .noSideEffects
  )

  private func echo() -> ScriptedTransport {
    ScriptedTransport { $0.reply("\"ok\"") }
  }

  // MARK: GET

  func testGET() async throws {
    let transport = self.echo()
    let client = ProtocolClient.scripted(transport, timeout: .seconds(2)) { $0.unaryGET = .alwaysEnabled }
    let response = await client.unary(Self.read, "a b", options: CallOptions(headers: ["x-a": ["1"]]))
    XCTAssertEqual(try response.get(), "ok")
    let request = try XCTUnwrap(transport.streams.first?.request)
    XCTAssertEqual(request.method, .get)
    XCTAssertEqual(request.target, "/test.Text/Read?connect=v1&encoding=json&message=%22a%20b%22")
    XCTAssertEqual(
      request.headers,
      [
        "x-a": ["1"], "accept-encoding": ["gzip"], "connect-timeout-ms": ["2000"],
        "user-agent": ["connect-swift-linux/0.1.0"],
      ]
    )
    guard case .complete(let body) = request.body else { return XCTFail("not complete") }
    XCTAssertEqual(body.readableBytes, 0)
  }

  func testWhatDoesNotGoAsGET() async throws {
    func method(_ method: TextMethod, _ get: UnaryGET, _ networkProtocol: NetworkProtocol = .connect) async
      -> HTTPStreamRequest.Method?
    {
      let transport = self.echo()
      let client = ProtocolClient.scripted(transport) {
        $0.unaryGET = get
        $0.networkProtocol = networkProtocol
      }
      _ = await client.unary(method, "hello")
      return transport.streams.first?.request.method
    }
    let asGET = await method(Self.read, .alwaysEnabled)
    let disabled = await method(Self.read, .disabled)
    let withEffects = await method(.unary, .alwaysEnabled)
    let grpc = await method(Self.read, .alwaysEnabled, .grpc)
    let web = await method(Self.read, .alwaysEnabled, .grpcWeb)
    XCTAssertEqual([asGET, disabled, withEffects, grpc, web], [.get, .post, .post, .post, .post])
  }

  func testTheLimitOfGET() async throws {
    let query = "connect=v1&encoding=json&message=%22hello%22"
    let length = "http://scripted.test/test.Text/Read?\(query)".utf8.count
    for (limit, expected) in [(length, HTTPStreamRequest.Method.get), (length - 1, .post), (0, .post)] {
      let transport = self.echo()
      let sawGET = Mutex<Bool?>(nil)
      let interceptor = TestInterceptor.make { interceptor in
        interceptor.unaryBytes = UnaryFunction(requestFunction: { request, proceed in
          sawGET.withLock { $0 = request.isGET }
          proceed(.success(request))
        })
      }
      for interceptors in [[], [interceptor]] as [[InterceptorFactory]] {
        let client = ProtocolClient.scripted(transport, interceptors: interceptors) {
          $0.unaryGET = .enabledForLimitedPayloadSizes(maxBytes: limit)
        }
        _ = await client.unary(Self.read, "hello")
        let request = try XCTUnwrap(transport.streams.last?.request)
        XCTAssertEqual(request.method, expected)
        if expected == .post { XCTAssertEqual(transport.streams.last?.body, ByteBuffer(string: "\"hello\"")) }
      }
      XCTAssertEqual(sawGET.withLock { $0 }, expected == .get)
    }
  }

  func testHooksSeeAndKeepGET() async throws {
    func method(_ change: @escaping @Sendable (HTTPRequest<ByteBuffer>) -> HTTPRequest<ByteBuffer>) async
      -> (String?, HTTPStreamRequest.Method?)
    {
      let transport = self.echo()
      let interceptor = TestInterceptor.make { interceptor in
        interceptor.unaryBytes = UnaryFunction(requestFunction: { request, proceed in
          proceed(.success(change(request)))
        })
      }
      let check = TestInterceptor.make { interceptor in
        interceptor.unaryBytes = UnaryFunction(requestFunction: { request, proceed in
          var request = request
          request.headers["x-is-get"] = ["\(request.isGET)"]
          proceed(.success(request))
        })
      }
      let client = ProtocolClient.scripted(transport, interceptors: [interceptor, check]) {
        $0.unaryGET = .alwaysEnabled
      }
      _ = await client.unary(Self.read, "hello")
      let request = transport.streams.first?.request
      return (request?.headers.first("x-is-get"), request?.method)
    }
    let kept = await method { request in
      HTTPRequest(
        url: request.url,
        contentType: request.contentType,
        headers: request.headers,
        message: request.message
      )
    }
    XCTAssertEqual(kept.0, "true")
    XCTAssertEqual(kept.1, .get)
    let refused = await method { request in
      var request = request
      request.isGET = false
      return request
    }
    XCTAssertEqual(refused.0, "false")
    XCTAssertEqual(refused.1, .post)
    let query = await method { request in
      var request = request
      request.url.query = "a=b"
      return request
    }
    XCTAssertEqual(query.1, .get)
  }

  // MARK: Compression

  func testUnaryCompression() async throws {
    let transport = self.echo()
    let client = ProtocolClient.scripted(transport) {
      $0.compression = Compression(
        requests: GzipCompressionPool(),
        minimumRequestBytes: 10,
        responses: [GzipCompressionPool(), DeflateCompressionPool()]
      )
    }
    func request(_ text: Text, _ compression: RequestCompression = .inherited) async throws -> ScriptedStream
    {
      _ = await client.unary(.unary, text, options: CallOptions(requestCompression: compression))
      return try XCTUnwrap(transport.streams.last)
    }
    let large = try await request("hello hello")
    XCTAssertEqual(large.request.headers["content-encoding"], ["gzip"])
    XCTAssertEqual(large.request.headers["accept-encoding"], ["gzip,deflate"])
    XCTAssertEqual(
      try GzipCompressionPool().decompress(large.body, maximumSize: 100),
      ByteBuffer(string: "\"hello hello\"")
    )
    let small = try await request("hello")
    XCTAssertFalse(small.request.headers.contains("content-encoding"))
    XCTAssertEqual(small.body, ByteBuffer(string: "\"hello\""))
    let none = try await request("hello hello", RequestCompression.none)
    XCTAssertFalse(none.request.headers.contains("content-encoding"))
    let deflate = try await request("hello hello", .pool(DeflateCompressionPool()))
    XCTAssertEqual(deflate.request.headers["content-encoding"], ["deflate"])
  }

  func testStreamCompression() async throws {
    let protocols: [(NetworkProtocol, String)] = [
      (.connect, "connect-content-encoding"), (.grpc, "grpc-encoding"), (.grpcWeb, "grpc-encoding"),
    ]
    for (networkProtocol, name) in protocols {
      let transport = ScriptedTransport { stream in stream.onFinish = { $0.reply("\"ok\"") } }
      let client = ProtocolClient.scripted(transport) {
        $0.networkProtocol = networkProtocol
        $0.compression = Compression(requests: GzipCompressionPool(), minimumRequestBytes: 10)
      }
      let stream = client.clientStream(.clientStream)
      try await stream.send("hello hello")
      try await stream.send("small")
      _ = await stream.closeAndReceive()
      let sent = try XCTUnwrap(transport.streams.first)
      XCTAssertEqual(sent.request.headers[name], ["gzip"])
      var envelopes = EnvelopeDecoder(maximumMessageSize: 1000)
      envelopes.receive(sent.body)
      let first = try XCTUnwrap(try envelopes.next())
      XCTAssertEqual(first.flags, 1)
      XCTAssertEqual(
        try GzipCompressionPool().decompress(first.message, maximumSize: 100),
        ByteBuffer(string: "\"hello hello\"")
      )
      XCTAssertEqual(try envelopes.next(), Envelope(flags: 0, message: ByteBuffer(string: "\"small\"")))
    }
  }

  func testGETIsCompressed() async throws {
    let transport = self.echo()
    let client = ProtocolClient.scripted(transport) {
      $0.unaryGET = .alwaysEnabled
      $0.compression = Compression(requests: GzipCompressionPool(), minimumRequestBytes: 0)
    }
    _ = await client.unary(Self.read, "hello")
    let request = try XCTUnwrap(transport.streams.first?.request)
    XCTAssertTrue(
      request.target.hasPrefix(
        "/test.Text/Read?connect=v1&base64=1&compression=gzip&encoding=json&message=H4s"
      )
    )
    XCTAssertFalse(request.headers.contains("content-encoding"))
  }

  func testAPoolThatFails() async throws {
    struct Failing: CompressionPool {
      let name = "failing"
      func compress(_ message: ByteBuffer) throws -> ByteBuffer { throw CancellationError() }
      func decompress(_ message: ByteBuffer, maximumSize: Int) throws -> ByteBuffer { message }
    }
    let client = ProtocolClient.scripted(self.echo())
    let options = CallOptions(requestCompression: .pool(Failing()))
    let small = await client.unary(.unary, "hello", options: options)
    XCTAssertEqual(small.code, .ok)
    let large = await client.unary(.unary, Text(String(repeating: "x", count: 2000)), options: options)
    XCTAssertEqual(large.code, .internalError)
    XCTAssertTrue(large.error?.exception is CancellationError)
  }

  // MARK: Limits

  func testTheLimitOfSentMessages() async throws {
    for networkProtocol in [NetworkProtocol.connect, .grpc, .grpcWeb] {
      let transport = self.echo()
      let client = ProtocolClient.scripted(transport) {
        $0.networkProtocol = networkProtocol
        $0.limits.maximumSentMessageSize = 10
      }
      let response = await client.unary(.unary, "hello hello")
      XCTAssertEqual(response.code, .resourceExhausted)
      XCTAssertEqual(
        response.error?.message,
        "message to send has 13 bytes, which is over the limit of 10 bytes (maximumSentMessageSize)"
      )
      XCTAssertEqual(transport.streams.count, 0)
    }
  }

  func testTheLimitOfSentMessagesInStreams() async throws {
    let transport = ScriptedTransport { _ in }
    let client = ProtocolClient.scripted(transport) { $0.limits.maximumSentMessageSize = 10 }
    let stream = client.clientStream(.clientStream)
    try await stream.send("hello")
    try? await stream.send("hello hello")
    try? await stream.send("again")
    let response = await stream.closeAndReceive()
    XCTAssertEqual(response.code, .resourceExhausted)
    XCTAssertEqual(transport.streams.first?.sentMessages, ["\"hello\""])
    XCTAssertEqual(transport.streams.first?.isCancelled, true)
  }

  // MARK: gRPC

  func testUnaryOverGRPC() async throws {
    func call(_ messages: [String], _ trailers: Headers) async -> ResponseMessage<Text> {
      let transport = ScriptedTransport { stream in
        stream.respond(headers: ["content-type": ["application/grpc+json"], "x-a": ["1"]])
        for message in messages { stream.sendMessage(message) }
        stream.end(trailers: trailers)
      }
      let client = ProtocolClient.scripted(transport) { $0.networkProtocol = .grpc }
      return await client.unary(.unary, "hello")
    }
    let one = await call(["\"a\""], ["grpc-status": ["0"], "x-b": ["2"]])
    XCTAssertEqual(try one.get(), "a")
    XCTAssertEqual(one.headers["x-a"], ["1"])
    XCTAssertEqual(one.trailers, ["x-b": ["2"]])
    let none = await call([], ["grpc-status": ["0"]])
    let two = await call(["\"a\"", "\"b\""], ["grpc-status": ["0"]])
    XCTAssertEqual([none.code, two.code], [.unimplemented, .unimplemented])
    let error = await call(["\"a\""], ["grpc-status": ["5"], "grpc-message": ["gone"]])
    XCTAssertEqual(error.code, .notFound)
    XCTAssertEqual(error.error?.message, "gone")
  }
}
