internal import CProtobufC
internal import Connect
internal import ConnectNIO
internal import ConnectProtobufC
internal import Foundation
internal import LoopbackServer
internal import NIOCore
internal import ProtobufCExamples
internal import ProtobufCStubs
internal import SwiftProtobuf
internal import Synchronization
internal import TestSupport
import XCTest

private typealias CEcho = MethodSpec<
  CMessage<Connect__Test__V1__EchoRequest>, CMessage<Connect__Test__V1__EchoResponse>
>

/// Calls of the loopback server, through the whole engine, with each family of messages.
final class ProtobufCCallTests: XCTestCase {
  private static let settings = [NetworkProtocol.connect, .grpc, .grpcWeb].flatMap { networkProtocol in
    [ProtoCodec() as any Codec, JSONCodec()].map { WireSetting(networkProtocol, codec: $0) }
  }

  private let echo = CEcho(path: TestMethods.echo.path, streamType: .unary)

  /// Calls `body` with a client of a server of its own.
  private func run(
    _ setting: WireSetting = settings[0],
    interceptors: [InterceptorFactory] = [],
    unaryGET: UnaryGET = .disabled,
    _ body: (ProtocolClient) async throws -> Void
  ) async throws {
    let server = try await LoopbackServer.start(.plaintext)
    let httpClient = NIOHTTPClient(configuration: NIOHTTPClient.Configuration(version: .http2Only))
    let config = ProtocolClientConfig(
      host: server.url,
      networkProtocol: setting.networkProtocol,
      codec: setting.codec,
      interceptors: interceptors,
      timeout: .seconds(60),
      unaryGET: unaryGET
    )
    do {
      try await body(ProtocolClient(httpClient: httpClient, config: config))
    } catch {
      XCTFail("\(setting): \(error)")
    }
    await httpClient.shutdown(within: .seconds(10))
    await server.stop()
  }

  private func request(_ text: String) throws -> CMessage<Connect__Test__V1__EchoRequest> {
    var request = CMessage<Connect__Test__V1__EchoRequest>()
    try request.update { fields, arena in
      fields.payload = try arena.message { (payload: inout Connect__Test__V1__Payload) in
        payload.text = try arena.string(text)
        payload.big = 1 << 60
        payload.data = arena.bytes([0, 1, 2])
        payload.numbers = arena.array([1, -1])
        payload.n_numbers = 2
        payload._maybe_case = CONNECT__TEST__V1__PAYLOAD___MAYBE_MAYBE
        payload.maybe = 0
      }
    }
    return request
  }

  func testStructs() async throws {
    for setting in Self.settings {
      try await self.run(setting) { client in
        let response = try await client.unary(self.echo, self.request("from C")).get()
        XCTAssertEqual(response.payload?.text, "from C", "\(setting)")
        XCTAssertEqual(response.payload?.big, 1 << 60, "\(setting)")
        XCTAssertEqual(response.payload?.data, ByteBuffer(bytes: [0, 1, 2]), "\(setting)")
        XCTAssertEqual(response.payload?.list(\.numbers, count: \.n_numbers), [1, -1], "\(setting)")
        XCTAssertEqual(response.payload?._maybe_case, CONNECT__TEST__V1__PAYLOAD___MAYBE_MAYBE, "\(setting)")
        XCTAssertEqual(response.seen?.codec, setting.codec.name)
      }
    }
  }

  func testDynamicMessages() async throws {
    let method = try connectTestV1TestDescriptors.pool().method(TestMethods.echo.path)
    for setting in Self.settings {
      try await self.run(setting) { client in
        var request = DynamicMessage(method.input)
        try request.update("payload") { payload in
          try payload.set("text", to: "by name")
          try payload.set("counts", to: ["a": 1])
          try payload.set("tint", to: "COLOR_GREEN")
          try payload.set("words", to: ["x", "y"])
        }
        let response = try await client.unary(method.spec, request).get()
        XCTAssertEqual(try response.value(of: "payload"), try request.value(of: "payload"), "\(setting)")
      }
    }
  }

  /// The borrowed struct is only read until the call's end.
  func testBorrowedStruct() async throws {
    try await self.run { client in
      let pointer = try self.request("borrowed").copyForC()
      let response = try await client.unary(self.echo, CMessage(unsafeBorrowing: pointer)).get()
      XCTAssertEqual(response.payload?.text, "borrowed")
      connect__test__v1__echo_request__free_unpacked(pointer, nil)
    }
  }

  func testStreams() async throws {
    let pool = try connectTestV1TestDescriptors.pool()
    let count = try pool.method(TestMethods.count.path).spec
    let converse = MethodSpec<
      CMessage<Connect__Test__V1__ConverseRequest>, CMessage<Connect__Test__V1__ConverseResponse>
    >(path: TestMethods.converse.path, streamType: .bidirectionalStream)
    for setting in Self.settings {
      try await self.run(setting) { client in
        var request = DynamicMessage(try count.input(of: pool))
        try request.set("from", to: 5)
        try request.update("instruction") { try $0.set("message_count", to: 3) }
        var numbers: [FieldValue] = []
        for try await message in client.serverStream(count, request).messages {
          numbers.append(try message.value(of: "number"))
        }
        XCTAssertEqual(numbers, [5, 6, 7], "\(setting)")

        let stream = client.bidirectionalStream(converse)
        var texts = stream.messages.makeAsyncIterator()
        for text in ["a", "b"] {
          var request = CMessage<Connect__Test__V1__ConverseRequest>()
          try request.update { fields, arena in
            fields.payload = try arena.message { $0.text = try arena.string(text) }
          }
          try await stream.send(request)
          let answer = try await texts.next()
          XCTAssertEqual(answer?.payload?.text, text, "\(setting)")
        }
        stream.finish()
        let end = try await texts.next()
        XCTAssertNil(end, "\(setting)")
      }
    }
  }

  func testGETOfAMethodWithoutSideEffects() async throws {
    let lookup = try connectTestV1TestDescriptors.pool().method(TestMethods.lookup.path).spec
    try await self.run(unaryGET: .alwaysEnabled) { client in
      var request = DynamicMessage(try lookup.input(of: connectTestV1TestDescriptors.pool()))
      try request.set("key", to: "k")
      let response = try await client.unary(lookup, request).get()
      guard case .message(let seen) = try response.value(of: "seen") else { return XCTFail("no message") }
      XCTAssertEqual(try seen.value(of: "http_method"), "GET")
    }
  }

  func testErrors() async throws {
    try await self.run { client in
      var request = CMessage<Connect__Test__V1__EchoRequest>()
      request.update { fields, arena in
        fields.instruction = arena.message { $0.response_bytes = 10 }
        fields.payload = arena.message { $0.data.len = 5 }
      }
      let unsent = await client.unary(self.echo, request)
      XCTAssertEqual(unsent.code, .internalError)
      XCTAssertTrue(unsent.error?.message?.contains("Payload.data: 5 bytes at a null pointer") == true)

      // The answer is read as another type, in which the same number is of another wire type.
      let wrong = MethodSpec<
        CMessage<Connect__Test__V1__EchoRequest>, CMessage<Connect__Test__V1__CountResponse>
      >(
        path: self.echo.path,
        streamType: .unary
      )
      let undecoded = await client.unary(wrong, try self.request("x"))
      XCTAssertEqual(undecoded.code, .internalError)
      XCTAssertTrue(
        undecoded.error?.message?.contains("connect.test.v1.CountResponse.number: wrong wire type 2") == true
      )

      let small = CEcho(
        path: self.echo.path,
        streamType: .unary,
        limits: DecodingLimits(maximumMemory: 200)
      )
      let large = await client.unary(small, try self.request("x"))
      XCTAssertEqual(large.code, .resourceExhausted)

      let method = try connectTestV1TestDescriptors.pool().method(self.echo.path)
      let other = await client.unary(method.spec, DynamicMessage(method.output))
      XCTAssertEqual(other.code, .invalidArgument)
    }
  }

  /// One client, whose interceptor sees each request and each response as what it is.
  func testAnyMixOfTypes() async throws {
    let seen = Mutex<[String]>([])
    let swift = TestMethods.echo
    let dynamic = try connectTestV1TestDescriptors.pool().method(swift.path)
    let codable = MethodSpec<CodableEcho, CodableEcho>(codablePath: swift.path, streamType: .unary)
    let watch: InterceptorFactory = { _ in
      TypeWatcher { text in seen.withLock { $0.append(text) } }
    }
    try await self.run(Self.settings[1], interceptors: [watch]) { client in
      let text = try await client.unary(swift, .with { $0.payload.text = "1" }).get().payload.text
      XCTAssertEqual(text, "1")
      let structure = try await client.unary(self.echo, self.request("2")).get()
      XCTAssertEqual(structure.payload?.text, "2")
      var request = DynamicMessage(dynamic.input)
      try request.update("payload") { try $0.set("text", to: "3") }
      let answer = try await client.unary(dynamic.spec, request).get()
      XCTAssertEqual(try answer.value(of: "payload"), try request.value(of: "payload"))
      let plain = try await client.unary(codable, CodableEcho(payload: .init(text: "4"))).get()
      XCTAssertEqual(plain.payload.text, "4")
    }
    XCTAssertEqual(
      seen.withLock { $0 },
      [
        "request: Connect_Test_V1_EchoRequest, 1", "response: Connect_Test_V1_EchoResponse, 1",
        "request: CMessage<Connect__Test__V1__EchoRequest>, 2",
        "response: CMessage<Connect__Test__V1__EchoResponse>, 2",
        "request: DynamicMessage, 3", "response: DynamicMessage, 3",
        "request: CodableEcho, 4", "response: CodableEcho, 4",
      ]
    )
  }
}

extension MethodSpec where Input == DynamicMessage {
  fileprivate func input(of pool: DescriptorPool) throws -> MessageDescriptor {
    try pool.method(self.path).input
  }
}

private struct CodableEcho: Codable, Sendable {
  struct Payload: Codable, Sendable {
    var text: String
  }

  var payload: Payload
}

/// Tells the type of each request and response, and the text in it.
private struct TypeWatcher: Interceptor {
  let body: @Sendable (String) -> Void

  func unaryMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> UnaryMessageFunction<Input, Output> {
    UnaryMessageFunction(
      requestFunction: { request, proceed in
        self.body("request: \(type(of: request.message)), \(Self.text(of: request.message))")
        proceed(.success(request))
      },
      responseFunction: { response, proceed in
        if case .success(let message) = response.result {
          self.body("response: \(type(of: message)), \(Self.text(of: message))")
        }
        proceed(response)
      }
    )
  }

  private static func text<Message>(of message: Message) -> String {
    switch message {
    case let message as Connect_Test_V1_EchoRequest: message.payload.text
    case let message as Connect_Test_V1_EchoResponse: message.payload.text
    case let message as CMessage<Connect__Test__V1__EchoRequest>: message.payload?.text ?? ""
    case let message as CMessage<Connect__Test__V1__EchoResponse>: message.payload?.text ?? ""
    case let message as DynamicMessage:
      switch try? message.value(of: "payload") {
      case .message(let payload): (try? payload.withBytes(of: "text") { Self.text($0) }) ?? ""
      default: ""
      }
    case let message as CodableEcho: message.payload.text
    default: ""
    }
  }

  private static func text(_ span: RawSpan) -> String {
    span.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
  }
}
