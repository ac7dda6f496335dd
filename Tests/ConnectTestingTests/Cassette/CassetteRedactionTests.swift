import Connect
import ConnectTesting
import LoopbackServer
import NIOCore
import SwiftProtobuf
import TestSupport
import XCTest

/// Secrets do not get into the file, and calls are replayed without them.
final class CassetteRedactionTests: XCTestCase {
  private static let secrets = ["hunter22-secret", "top-token-4711", "binary-secret-9", "cookie-secret-1"]

  /// No form of the secrets is in the text: as it is, percent-encoded, or in base64 at any offset.
  private static func expectNoSecrets(
    _ text: String,
    _ what: String,
    file: StaticString = #filePath,
    line: UInt = #line
  ) {
    for secret in Self.secrets {
      XCTAssertFalse(text.contains(secret), "\(what): \(secret) in\n\(text)", file: file, line: line)
      for offset in 0..<3 {
        let bytes = Array(secret.utf8.dropFirst((3 - offset) % 3))
        let core = Data(bytes.prefix(bytes.count / 3 * 3)).base64EncodedString()
        XCTAssertFalse(
          text.contains(core),
          "\(what): \(secret) as base64 in\n\(text)",
          file: file,
          line: line
        )
      }
    }
  }

  private static func server(_ setting: WireSetting) -> InMemoryTransport {
    let transport = setting.transport
    transport.onUnary(TestMethods.echo) { request, context in
      context.responseHeaders["set-cookie"] = ["id=cookie-secret-1; secure"]
      context.responseTrailers.addBinary(name: "x-session-bin", value: ByteBuffer(string: "binary-secret-9"))
      if request.payload.text == "fail" {
        throw ConnectError(
          code: .unauthenticated,
          message: "no such password: hunter22-secret",
          details: [
            try ConnectError.Detail(Connect_Test_V1_ErrorInfo.with { $0.reason = "hunter22-secret" })
          ],
          metadata: ["x-echo": ["top-token-4711"]]
        )
      }
      return .with {
        $0.payload = request.payload
        $0.payload.text = "your password is hunter22-secret"
      }
    }
    transport.onServerStream(TestMethods.count) { _, responses, context in
      context.responseHeaders["x-echo"] = ["top-token-4711"]
      context.responseTrailers["set-cookie"] = ["cookie-secret-1"]
      try await responses.send(.with { $0.number = 1 })
      throw ConnectError(
        code: .aborted,
        message: "top-token-4711",
        metadata: ["x-a-bin": ["YmluYXJ5LXNlY3JldC05"]]
      )
    }
    transport.onUnary(TestMethods.lookup) { request, _ in .with { $0.value = request.key } }
    return transport
  }

  private static func request(_ text: String) -> EchoRequest {
    .with {
      $0.payload.text = text
      $0.payload.name = "hunter22-secret"
      $0.payload.words = ["public", "hunter22-secret"]
      $0.payload.nested.data = Data("hunter22-secret".utf8)
      $0.payload.counts = ["account": 4_711_471_147]
      $0.payload.children = [1: .with { $0.text = "hunter22-secret" }]
      $0.payload.color = .green
    }
  }

  private static let redaction = Cassette.Redaction(fields: [
    "payload.name", "payload.words[]", "payload.nested.data", "payload.counts[]", "payload.children[].text",
    "payload.color",
  ])

  private static let options = CallOptions(headers: [
    "authorization": ["Bearer top-token-4711"], "x-key-bin": ["YmluYXJ5LXNlY3JldC05"],
    "cookie": ["cookie-secret-1"],
    "x-public": ["this is said aloud"],
  ])

  /// Headers, binary headers and fields, in requests and responses; what echoes them; over each protocol.
  func testSecretsAreNotInTheFile() async throws {
    for setting in WireSetting.inMemory {
      let configuration = Cassette.Configuration(messages: TapedCalls.messages, redaction: Self.redaction)
      let cassette = try Cassette(configuration: configuration)
      let recording = try CassetteTransport(cassette, over: Self.server(setting), mode: .record)
      let first = try await Self.makeCalls(setting.client(over: recording))
      try await recording.finish()
      XCTAssertTrue(first[0].contains("hunter22-secret"), "\(setting)")
      Self.expectNoSecrets(cassette.text, "\(setting)")
      for text in ["REDACTED", "this is said aloud"] {
        XCTAssertTrue(cassette.text.contains(text), "\(setting)")
      }
      XCTAssertFalse(cassette.text.contains("4711471147"), "\(setting)")

      // The same calls, with the same secrets or with others, find their answers.
      for secret in ["hunter22-secret", "another password"] {
        let replay = try CassetteTransport(try Cassette(text: cassette.text, configuration: configuration))
        let again = try await Self.makeCalls(setting.client(over: replay), secret)
        try await replay.finish()
        XCTAssertTrue(again[0].contains("your password is REDACTED"), "\(setting): \(again[0])")
        XCTAssertTrue(again[1].contains("unauthenticated"), "\(setting): \(again[1])")
        XCTAssertTrue(again[2].contains("aborted: REDACTED"), "\(setting): \(again[2])")
        Self.expectNoSecrets(again.joined(), "\(setting)")
      }
    }
  }

  private static func makeCalls(
    _ client: ProtocolClient,
    _ secret: String = "hunter22-secret"
  ) async throws -> [String] {
    var requests = [self.request("hello"), self.request("fail")]
    for index in requests.indices { requests[index].payload.name = secret }
    var all: [String] = []
    for request in requests {
      let response = await client.unary(TestMethods.echo, request, options: self.options)
      all.append(TapedCalls.summary(response))
    }
    let stream = client.serverStream(TestMethods.count, .with { $0.from = 5 }, options: self.options)
    all.append(TapedCalls.summary(try await stream.results.collected()))
    return all
  }

  /// The message of a GET is in its URL.
  func testGET() async throws {
    for codec in [ProtoCodec() as any Codec, JSONCodec()] {
      let setting = WireSetting(.connect, codec: codec)
      let configuration = Cassette.Configuration(
        messages: TapedCalls.messages,
        redaction: .init(methodFields: [TestMethods.lookup.path: ["key", "value"]])
      )
      let cassette = try Cassette(configuration: configuration)
      let recording = try CassetteTransport(cassette, over: Self.server(setting), mode: .record)
      let request = Connect_Test_V1_LookupRequest.with { $0.key = "hunter22-secret" }
      let client = setting.client(over: recording) { $0.unaryGET = .alwaysEnabled }
      try requireEqual(
        try await client.unary(TestMethods.lookup, request).requireMessage().value,
        "hunter22-secret"
      )
      Self.expectNoSecrets(cassette.text, codec.name)

      let replay = try CassetteTransport(try Cassette(text: cassette.text, configuration: configuration))
      let again = setting.client(over: replay) { $0.unaryGET = .alwaysEnabled }
      try requireEqual(try await again.unary(TestMethods.lookup, request).requireMessage().value, "REDACTED")
    }
  }

  func testErrorsWithoutTheirMessagesAndDetails() async throws {
    for setting in WireSetting.inMemory {
      let server = setting.transport
      server.onUnary(TestMethods.echo) { _, _ in
        throw ConnectError(
          code: .notFound,
          message: "hunter22-secret",
          details: [try ConnectError.Detail(Connect_Test_V1_ErrorInfo.with { $0.reason = "hunter22-secret" })]
        )
      }
      server.onServerStream(TestMethods.count) { _, _, _ in
        throw ConnectError(code: .aborted, message: "hunter22-secret")
      }
      let configuration = Cassette.Configuration(
        redaction: .init(keepsErrorMessages: false, keepsErrorDetails: false)
      )
      let cassette = try Cassette(configuration: configuration)
      let recording = setting.client(over: try CassetteTransport(cassette, over: server, mode: .record))
      try await recording.unary(TestMethods.echo, EchoRequest()).requireError(.notFound)
      _ = try await recording.serverStream(TestMethods.count, CountRequest()).results.collected()
      Self.expectNoSecrets(cassette.text, "\(setting)")

      let copy = try Cassette(text: cassette.text, configuration: configuration)
      let replay = setting.client(over: try CassetteTransport(copy))
      let error = try await replay.unary(TestMethods.echo, EchoRequest()).requireError(.notFound)
      XCTAssertEqual(error.message, "REDACTED", "\(setting)")
      XCTAssertEqual(error.details, [], "\(setting)")
      let stream = try await replay.serverStream(TestMethods.count, CountRequest()).results.collected()
      XCTAssertEqual(try stream.requireError(.aborted).message, "REDACTED", "\(setting)")
    }
  }

  func testBinaryHeadersAreKeptByName() async throws {
    let setting = WireSetting(.grpc)
    let redaction = Cassette.Redaction(keptBinaryHeaders: ["X-Key-Bin"])
    let cassette = try Cassette(configuration: .init(redaction: redaction))
    let recording = setting.client(
      over: try CassetteTransport(cassette, over: TapedCalls.server(setting), mode: .record)
    )
    let headers: Headers = ["x-key-bin": ["YWJj"], "x-other-bin": ["ZGVm"]]
    _ = await recording.unary(TestMethods.echo, EchoRequest(), options: CallOptions(headers: headers))
    XCTAssertTrue(cassette.text.contains("YWJj"))
    XCTAssertFalse(cassette.text.contains("ZGVm"))
  }

  /// What cannot be redacted is not recorded, and nothing is written.
  func testWhatCannotBeRedactedIsAnError() async throws {
    for (setting, configuration, problem) in [
      (
        WireSetting(.connect), Cassette.Configuration(redaction: .init(fields: ["payload.text"])),
        "/connect.test.v1.TestService/Echo: fields of the request cannot be redacted"
      ),
      (
        WireSetting(.grpc, isCompressed: true),
        .init(messages: TapedCalls.messages, redaction: .init(fields: ["payload.text"]), compressions: []),
        "add the method to the configuration's messages, and the compression to its compressions"
      ),
      (
        WireSetting(.connect),
        .init(messages: TapedCalls.messages, redaction: .init(fields: ["payload.txt"])),
        "no message that is known or was recorded has the field \"payload.txt\""
      ),
      (
        WireSetting(.connect, codec: JSONCodec()), .init(redaction: .init(fields: ["password"])),
        "no message that is known or was recorded has the field \"password\""
      ),
      (
        // A secret of a header in a message of an unknown type.
        WireSetting(.grpcWeb), .init(), "fields of the request cannot be redacted"
      ),
    ] {
      let path = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID()).json").path
      let cassette = try Cassette(configuration: configuration)
      let recording = try CassetteTransport(cassette, over: TapedCalls.server(setting), mode: .record)
      let client = setting.client(over: recording)
      let request = EchoRequest.with { $0.payload.text = "top-token-4711" }
      // The call itself goes on.
      _ = try await client.unary(TestMethods.echo, request, options: Self.options).requireMessage()
      XCTAssertThrowsError(try cassette.write(to: path), "\(setting)") { error in
        XCTAssertTrue("\(error)".contains(problem), "\(error)")
        Self.expectNoSecrets("\(error)", "\(setting)")
      }
      XCTAssertFalse(FileManager.default.fileExists(atPath: path))
    }
  }

  /// A value that is secret in the response must not stand in the request.
  func testSecretsOfTheResponseInTheRequest() async throws {
    let setting = WireSetting(.connect)
    let configuration = Cassette.Configuration(
      messages: TapedCalls.messages,
      redaction: .init(fields: ["value"])
    )
    let cassette = try Cassette(configuration: configuration)
    let server = InMemoryTransport()
    server.onUnary(TestMethods.lookup) { request, _ in .with { $0.value = request.key } }
    let recording = setting.client(over: try CassetteTransport(cassette, over: server, mode: .record))
    _ = await recording.unary(TestMethods.lookup, .with { $0.key = "hunter22-secret" })
    XCTAssertEqual(cassette.count, 0)
    XCTAssertThrowsError(try cassette.write(to: "/nonexistent/x.json")) { error in
      XCTAssertTrue("\(error)".contains("stands in another one"), "\(error)")
    }
  }

  /// Fields without a place for the word are left out, so that the message stays one of its type.
  func testRedactedFieldsOfAllTypes() async throws {
    let fields = [
      "text", "flag", "small", "big", "huge", "single", "ratio", "data", "color", "maybe", "numbers", "words",
      "palette",
      "counts", "children", "nested", "number", "time", "span", "numbers[]", "palette[]", "nested.nested.big",
      "children[].time", "nested.time",
    ]
    for setting in [WireSetting(.grpc), WireSetting(.connect, codec: JSONCodec())] {
      for field in fields {
        let configuration = Cassette.Configuration(
          messages: TapedCalls.messages,
          redaction: .init(fields: ["payload.\(field)"])
        )
        let cassette = try Cassette(configuration: configuration)
        let server = TapedCalls.server(setting)
        let recording = setting.client(over: try CassetteTransport(cassette, over: server, mode: .record))
        let request = EchoRequest.with {
          $0.payload = TapedCalls.payload
          $0.payload.children[-1]?.time = .init(seconds: 5)
          $0.payload.color = .green
          $0.payload.small = -7
          $0.payload.huge = .max
          $0.payload.single = 1.5
          $0.payload.words = ["a"]
          $0.payload.palette = [.red]
          $0.payload.span = .init(seconds: 1)
          $0.payload.nested = TapedCalls.payload
          $0.payload.nested.nested.big = 12345
          $0.payload.number = 77
          $0.payload.maybe = 3
          $0.payload.flag = true
        }
        _ = try await recording.unary(TestMethods.echo, request).requireMessage()
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID()).json").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        try cassette.write(to: path)
        let copy = try Cassette(contentsOf: path, configuration: configuration)
        let replay = setting.client(over: try CassetteTransport(copy))
        let response = try await replay.unary(TestMethods.echo, request).requireMessage()
        XCTAssertNotEqual(response.payload, request.payload, "\(setting) \(field)")
      }
    }
  }

  /// Types that do not know their fields: what is JSON already is redacted, and stays a message of its type.
  func testCodableMessages() async throws {
    struct Login: Codable, Sendable {
      var user: String
      var password: String
      var pin: Int
    }
    struct Session: Codable, Sendable {
      var greeting: String
      var expires: Date
      var token: String?
    }
    let login = MethodSpec<Login, Session>(codablePath: "/shop.v1.Shop/Login", streamType: .unary)
    let server = InMemoryTransport()
    server.onUnary(login) { request, _ in
      Session(
        greeting: "hello \(request.password)",
        expires: Date(timeIntervalSince1970: 7),
        token: "top-token-4711"
      )
    }
    let redaction = Cassette.Redaction(fields: ["password", "pin", "token"])
    for messages in [Cassette.Messages(), .of(login)] {
      let configuration = Cassette.Configuration(messages: messages, redaction: redaction)
      let cassette = try Cassette(configuration: configuration)
      let setting = WireSetting(.connect, codec: JSONCodec())
      let recording = try CassetteTransport(cassette, over: server, mode: .record)
      let request = Login(user: "ada", password: "hunter22-secret", pin: 47_114_711)
      _ = try await setting.client(over: recording).unary(login, request).requireMessage()
      try await recording.finish()
      Self.expectNoSecrets(cassette.text, "codable")
      XCTAssertFalse(cassette.text.contains("47114711"), cassette.text)

      let replay = try CassetteTransport(try Cassette(text: cassette.text, configuration: configuration))
      let session = try await setting.client(over: replay).unary(login, request).requireMessage()
      XCTAssertEqual(session.greeting, "hello REDACTED")
      XCTAssertEqual(session.token, "REDACTED")
      XCTAssertEqual(session.expires, Date(timeIntervalSince1970: 7))
    }
  }

  func testPathsThatAreNone() {
    for path in ["", ".", "a..b", "a[", "a]b", "[]", "a[0]", String(repeating: "a.", count: 40) + "a"] {
      XCTAssertThrowsError(try Cassette(configuration: .init(redaction: .init(fields: [path]))), path) {
        error in
        XCTAssertTrue(error is CassetteError)
      }
    }
  }
}
