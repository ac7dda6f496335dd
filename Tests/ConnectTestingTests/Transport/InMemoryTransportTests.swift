import Connect
import ConnectTesting
import LoopbackServer
import NIOCore
import SwiftProtobuf
import Synchronization
import TestSupport
import XCTest

/// Calls through the whole engine, over each protocol, codec and compression.
final class InMemoryTransportTests: XCTestCase {
  // MARK: Stream types

  func testUnary() async throws {
    for setting in WireSetting.inMemory {
      let transport = setting.transport
      let seen = Mutex<Headers?>(nil)
      transport.onUnary(TestMethods.echo) { request, context in
        seen.withLock { $0 = context.requestHeaders }
        context.responseHeaders["x-head"] = ["1"]
        context.responseTrailers["x-trail"] = ["2", "3"]
        return .with { $0.payload.text = request.payload.text + "!" }
      }
      let text = String(repeating: "hello ", count: 100)

      let response = await setting.client(transport).unary(
        TestMethods.echo,
        .with { $0.payload.text = text },
        options: CallOptions(headers: ["x-id": ["7"]])
      )

      XCTAssertEqual(try response.requireMessage().payload.text, text + "!", "\(setting)")
      XCTAssertEqual(response.headers["x-head"], ["1"], "\(setting)")
      XCTAssertEqual(response.trailers["x-trail"], ["2", "3"], "\(setting)")
      let headers = try XCTUnwrap(seen.withLock { $0 })
      XCTAssertEqual(headers["x-id"], ["7"], "\(setting)")
      let encodings = headers["content-encoding"] + headers["grpc-encoding"]
      XCTAssertEqual(encodings, setting.isCompressed ? ["gzip"] : [], "\(setting)")
    }
  }

  func testServerStream() async throws {
    for setting in WireSetting.inMemory {
      let transport = setting.transport
      transport.onServerStream(TestMethods.count) { request, responses, context in
        context.responseHeaders["x-head"] = ["1"]
        for number in request.from..<(request.from + 5) {
          try await responses.send(.with { $0.number = number })
        }
        context.responseTrailers["x-trail"] = ["2"]
      }

      let stream = setting.client(transport).serverStream(TestMethods.count, .with { $0.from = 3 })
      let collected = try await stream.results.collected()

      XCTAssertEqual(try collected.requireMessages().map(\.number), [3, 4, 5, 6, 7], "\(setting)")
      XCTAssertEqual(collected.headers["x-head"], ["1"], "\(setting)")
      XCTAssertEqual(collected.trailers["x-trail"], ["2"], "\(setting)")
    }
  }

  func testClientStream() async throws {
    for setting in WireSetting.inMemory {
      let transport = setting.transport
      transport.onClientStream(TestMethods.sum) { requests, context in
        var sum: Int64 = 0
        for try await request in requests { sum += request.number }
        return .with { [sum] in $0.sum = sum }
      }

      let stream = setting.client(transport).clientStream(TestMethods.sum)
      for number in 1...10 { try await stream.send(.with { $0.number = Int64(number) }) }
      let response = await stream.closeAndReceive()

      XCTAssertEqual(try response.requireMessage().sum, 55, "\(setting)")
    }
  }

  func testBidirectionalStreamAnswersEachMessageAsItComes() async throws {
    for setting in WireSetting.inMemory {
      let transport = setting.transport
      transport.onBidirectionalStream(TestMethods.converse) { requests, responses, context in
        for try await request in requests {
          try await responses.send(.with { $0.payload = request.payload })
        }
      }

      let stream = setting.client(transport).bidirectionalStream(TestMethods.converse)
      var messages = stream.messages.makeAsyncIterator()
      for text in ["a", "b", "c"] {
        try await stream.send(.with { $0.payload.text = text })
        let answer = try await messages.next()
        XCTAssertEqual(answer?.payload.text, text, "\(setting)")
      }
      stream.finish()
      let end = try await messages.next()
      XCTAssertNil(end, "\(setting)")
    }
  }

  // MARK: GET

  func testGET() async throws {
    for codec in [ProtoCodec() as any Codec, JSONCodec()] {
      for compression in [
        Compression.defaults, Compression(requests: GzipCompressionPool(), minimumRequestBytes: 0),
      ] {
        let transport = InMemoryTransport()
        let heads = Mutex<[ServerRequestHead]>([])
        transport.onUnary(TestMethods.lookup) { request, context in
          heads.withLock { $0.append(context.request) }
          return .with { $0.value = request.key + "=1" }
        }
        let config = ProtocolClientConfig(
          host: "http://memory/prefix",
          codec: codec,
          compression: compression,
          unaryGET: .alwaysEnabled
        )
        let client = ProtocolClient(httpClient: transport, config: config)

        let response = await client.unary(TestMethods.lookup, .with { $0.key = "ä +&%" })

        XCTAssertEqual(try response.requireMessage().value, "ä +&%=1")
        let head = try XCTUnwrap(heads.withLock { $0.first })
        XCTAssertEqual(head.method, "GET")
        XCTAssertEqual(head.path, "/prefix" + TestMethods.lookup.path)
        XCTAssertTrue(head.query.hasPrefix("connect=v1"))
      }
    }
  }

  // MARK: Errors

  func testErrorWithDetailsAndMetadata() async throws {
    for setting in WireSetting.inMemory {
      let transport = setting.transport
      let failure = ConnectError(
        code: .notFound,
        message: "no such: ä\n100%",
        details: [try ConnectError.Detail(Connect_Test_V1_ErrorInfo.with { $0.reason = "gone" })],
        metadata: ["x-why": ["because"]]
      )
      transport.onUnary(TestMethods.echo) { _, _ in throw failure }
      transport.onServerStream(TestMethods.count) { _, responses, _ in
        try await responses.send(.with { $0.number = 1 })
        throw failure
      }
      let client = setting.client(transport)

      let response = await client.unary(TestMethods.echo, EchoRequest())
      let error = try response.requireError(.notFound)
      XCTAssertEqual(error.message, failure.message, "\(setting)")
      XCTAssertEqual(try error.requireDetail(Connect_Test_V1_ErrorInfo.self).reason, "gone", "\(setting)")
      XCTAssertEqual(error.metadata["x-why"], ["because"], "\(setting)")

      let collected = try await client.serverStream(TestMethods.count, CountRequest()).results.collected()
      XCTAssertEqual(collected.messages.map(\.number), [1], "\(setting)")
      let end = try collected.requireError(.notFound)
      XCTAssertEqual(try end.requireDetail(Connect_Test_V1_ErrorInfo.self).reason, "gone", "\(setting)")
      XCTAssertEqual(end.metadata["x-why"], ["because"], "\(setting)")
    }
  }

  func testOtherErrorsBecomeInternal() async throws {
    struct Broken: Error {}
    let transport = InMemoryTransport()
    transport.onUnary(TestMethods.echo) { _, _ in throw Broken() }

    let response = await Self.client(transport).unary(TestMethods.echo, EchoRequest())

    XCTAssertEqual(try response.requireError(.internalError).message, "Broken()")
  }

  func testErrorOfAnotherCallCanBePassedOn() async throws {
    for setting in WireSetting.inMemory {
      let inner = setting.transport
      inner.onUnary(TestMethods.echo) { _, _ in
        throw ConnectError(code: .aborted, message: "inner", metadata: ["x-a": ["1"]])
      }
      let innerClient = setting.client(inner)
      let outer = setting.transport
      outer.onUnary(TestMethods.echo) { request, _ in
        try await innerClient.unary(TestMethods.echo, request).get()
      }
      outer.onServerStream(TestMethods.count) { _, _, _ in
        _ = try await innerClient.unary(TestMethods.echo, EchoRequest()).get()
      }
      let client = setting.client(outer)

      let error = try await client.unary(TestMethods.echo, EchoRequest()).requireError(.aborted)
      XCTAssertEqual(error.message, "inner", "\(setting)")
      XCTAssertEqual(error.metadata["x-a"], ["1"], "\(setting)")
      let stream = try await client.serverStream(TestMethods.count, CountRequest()).results.collected()
      XCTAssertEqual(try stream.requireError(.aborted).metadata["x-a"], ["1"], "\(setting)")
    }
  }

  func testErrorIsNeverOK() async throws {
    for setting in WireSetting.inMemory {
      let transport = setting.transport
      transport.onUnary(TestMethods.echo) { _, _ in throw ConnectError(code: .ok, message: "not really") }
      let response = await setting.client(transport).unary(TestMethods.echo, EchoRequest())
      XCTAssertEqual(try response.requireError(.unknown).message, "not really", "\(setting)")
    }
  }

  func testMethodWithoutHandlerIsNamed() async throws {
    for setting in WireSetting.inMemory {
      let client = setting.client(setting.transport)
      let response = await client.unary(TestMethods.echo, EchoRequest())
      XCTAssertEqual(
        try response.requireError(.unimplemented).message,
        "/connect.test.v1.TestService/Echo has no handler in this transport"
      )
      let collected = try await client.serverStream(TestMethods.count, CountRequest()).results.collected()
      XCTAssertEqual(
        try collected.requireError(.unimplemented).message,
        "/connect.test.v1.TestService/Count has no handler in this transport"
      )
    }
  }

  func testUnknownRequestCompressionIsRefused() async throws {
    for network in [NetworkProtocol.connect, .grpc, .grpcWeb] {
      let transport = InMemoryTransport(requestCompressions: [])
      transport.onUnary(TestMethods.echo) { _, _ in EchoResponse() }
      let compression = Compression(requests: GzipCompressionPool(), minimumRequestBytes: 0)
      let client = Self.client(transport) {
        $0.networkProtocol = network
        $0.compression = compression
      }
      let response = await client.unary(TestMethods.echo, .with { $0.payload.text = "a" })
      XCTAssertEqual(
        try response.requireError(.unimplemented).message,
        "unknown compression \"gzip\": supported is identity",
        "\(network)"
      )
    }
  }

  // MARK: Other families of messages

  func testCodableMessages() async throws {
    struct Order: Codable, Sendable { var count: Int }
    struct Receipt: Codable, Sendable, Equatable { var total: Int }
    let buy = MethodSpec<Order, Receipt>(codablePath: "/shop.v1.Shop/Buy", streamType: .unary)
    let transport = InMemoryTransport()
    transport.onUnary(buy) { order, _ in Receipt(total: order.count * 3) }

    let client = Self.client(transport) { $0.codec = JSONCodec() }
    let response = await client.unary(buy, Order(count: 2))

    try requireEqual(try response.requireMessage(), Receipt(total: 6))
  }

  // MARK: Interceptors

  func testInterceptorsAreReal() async throws {
    struct Signing: Interceptor {
      func unaryFunction() -> UnaryFunction {
        UnaryFunction(requestFunction: { request, proceed in
          var request = request
          request.headers["x-signature"] = ["\(request.message.readableBytes)"]
          proceed(.success(request))
        })
      }
    }
    let transport = InMemoryTransport()
    transport.onUnary(TestMethods.echo) { _, context in
      .with { $0.payload.text = context.requestHeaders.first("x-signature") ?? "" }
    }
    let client = Self.client(transport) { $0.interceptors = [{ _ in Signing() }] }

    let response = await client.unary(TestMethods.echo, .with { $0.payload.text = "abc" })

    XCTAssertEqual(try response.requireMessage().payload.text, "7")
  }

  // MARK: Raw handlers

  func testRawHandlerAnswersWithHTTP() async throws {
    let transport = InMemoryTransport()
    let body = Mutex(ByteBuffer())
    transport.onRaw(TestMethods.echo.path) { exchange in
      let received = try await exchange.body()
      body.withLock { $0 = received }
      try await exchange.respond(
        status: 503,
        headers: ["retry-after": ["1"]],
        body: ByteBuffer(string: "busy")
      )
    }

    let response = await Self.client(transport).unary(TestMethods.echo, .with { $0.payload.text = "abc" })

    let error = try response.requireError(.unavailable)
    XCTAssertEqual(error.httpStatus, 503)
    XCTAssertEqual(error.metadata["retry-after"], ["1"])
    let expected: [UInt8] = try EchoRequest.with { $0.payload.text = "abc" }.serializedBytes()
    XCTAssertEqual(Array(body.withLock { $0 }.readableBytesView), expected)
  }

  func testRawHandlerThatThrowsResets() async throws {
    let transport = InMemoryTransport()
    transport.onRaw(TestMethods.echo.path) { exchange in
      try await exchange.sendHead(status: 200, headers: ["content-type": ["application/proto"]])
      throw ConnectError(code: .aborted)
    }
    let response = await Self.client(transport).unary(TestMethods.echo, EchoRequest())
    XCTAssertEqual(
      try response.requireError(.internalError).message,
      "the server reset the stream with HTTP/2 error code 2"
    )
  }

  func testMisuseOfAnExchangeIsAnError() async throws {
    let transport = InMemoryTransport()
    let errors = CallbackResults<String>()
    transport.onRaw(TestMethods.echo.path) { exchange in
      func note(_ work: () async throws -> Void) async {
        do {
          try await work()
        } catch let error as ConnectError {
          errors.receive(error.message ?? "")
        } catch {}
      }
      await note { try await exchange.sendBody(ByteBuffer(string: "a")) }
      try await exchange.sendHead(status: 200, headers: ["content-type": ["application/proto"]])
      await note { try await exchange.sendHead(status: 200, headers: [:]) }
      try await exchange.sendEnd(ByteBuffer(), trailers: [:])
      await note { try await exchange.sendBody(ByteBuffer(string: "a")) }
    }

    let response = await Self.client(transport).unary(TestMethods.echo, EchoRequest())

    XCTAssertNotNil(try response.requireMessage())
    let expected = [
      "the response's head was not sent", "the response's head was sent before", "the response has ended",
    ]
    let received = try await errors.next(3)
    try requireEqual(received, expected)
  }

  /// Of a child task that was cancelled nothing is taken.
  func testReadingIsCancelled() async throws {
    let transport = InMemoryTransport()
    let outcomes = CallbackResults<String>()
    transport.onRaw(TestMethods.echo.path) { exchange in
      await withTaskGroup(of: Void.self) { group in
        group.cancelAll()
        group.addTask {
          do {
            _ = try await exchange.nextChunk()
            outcomes.receive("read")
          } catch {
            outcomes.receive("\(type(of: error))")
          }
        }
      }
      outcomes.receive("\(try await exchange.nextChunk()?.readableBytes ?? 0) bytes")
      try await exchange.respond(
        status: 200,
        headers: ["content-type": ["application/proto"]],
        body: ByteBuffer()
      )
    }
    let response = await Self.client(transport).unary(
      TestMethods.echo,
      .with { $0.payload.text = "hello" }
    )
    XCTAssertNotNil(try response.requireMessage())
    let received = try await outcomes.next(2)
    try requireEqual(received, ["CancellationError", "9 bytes"])
  }

  static func client(
    _ transport: InMemoryTransport,
    _ configure: (inout ProtocolClientConfig) -> Void = { _ in }
  ) -> ProtocolClient {
    var config = ProtocolClientConfig(host: "http://memory")
    configure(&config)
    return ProtocolClient(httpClient: transport, config: config)
  }
}
