import Connect
import ConnectTesting
import Foundation
import NIOCore
import XCTest

/// Codecs and response parsers of one method, and of one call.
final class MethodFormatTests: XCTestCase {
  /// Encodes a text as a line of CSV.
  private struct CSVCodec: Codec {
    var name: String { "csv" }

    func encode<Message: Sendable>(
      _ message: Message,
      as coding: MessageCoding<Message>,
      deterministic: Bool
    ) throws -> ByteBuffer {
      ByteBuffer(string: "text\n\((message as? Text)?.text ?? "")\n")
    }

    func decode<Message: Sendable>(_ bytes: ByteBuffer, as coding: MessageCoding<Message>) throws -> Message {
      let lines = String(buffer: bytes).split(separator: "\n")
      guard lines.count == 2, let text = Text(String(lines[1])) as? Message else {
        throw ConnectError(code: .dataLoss, message: "no line of CSV")
      }
      return text
    }
  }

  private static let csv: ScriptedTransport.Script = { stream in
    stream.respond(headers: ["content-type": ["application/csv"]])
    stream.send(stream.body)
    stream.end()
  }

  private func answering(
    _ status: Int,
    _ contentType: String?,
    _ body: ByteBuffer,
    headers: Headers = Headers(),
    isWhole: Bool = true
  ) -> ScriptedTransport {
    ScriptedTransport { stream in
      var all = headers
      if let contentType { all.add(name: "content-type", value: contentType) }
      stream.respond(status: status, headers: all)
      if body.readableBytes > 0 { stream.send(body) }
      if isWhole { stream.end() } else { stream.fail(ConnectError(code: .unavailable, message: "lost")) }
    }
  }

  /// Makes a text of what the parser sees.
  private static let describing = ResponseParser(for: Text.self) { response in
    Text(
      "\(response.httpStatus ?? 0) \(response.httpHeaders.first("content-type") ?? "-") \(response.code) "
        + String(buffer: response.message)
    )
  }

  // MARK: Codecs

  func testTheContentTypeFollowsFromTheCodecOfTheCallOrTheMethod() async {
    let transport = ScriptedTransport(Self.csv)
    let byCall = await ProtocolClient.scripted(transport)
      .unary(.unary, "x", options: CallOptions(codec: CSVCodec()))
    XCTAssertEqual(byCall.message, "x")
    let client = ProtocolClient.scripted(transport) {
      $0.methodFormats = { $0.path == "/test.Text/Unary" ? MethodFormat(codec: CSVCodec()) : nil }
    }
    let byMethod = await client.unary(.unary, "y")
    XCTAssertEqual(byMethod.message, "y")
    // The call's own codec comes first.
    let other = await client.unary(.unary, "z", options: CallOptions(codec: JSONCodec()))
    XCTAssertEqual(other.code, .internalError)
    XCTAssertEqual(
      transport.streams.map { $0.request.headers["content-type"] },
      [["application/csv"], ["application/csv"], ["application/json"]]
    )
    XCTAssertEqual(transport.streams.map(\.sentMessage), ["text\nx\n", "text\ny\n", "\"z\""])
  }

  func testOtherMethodsKeepTheClientsCodec() async {
    let transport = ScriptedTransport(StreamChainTests.echo)
    let client = ProtocolClient.scripted(transport) {
      $0.methodFormats = { $0.path == "/test.Text/Unary" ? MethodFormat(codec: CSVCodec()) : nil }
    }
    let results = await client.results(sending: ["x"])
    XCTAssertEqual(results, ["headers", "x", "end ok"])
    XCTAssertEqual(transport.streams[0].request.headers["content-type"], ["application/connect+json"])
  }

  func testAllProtocolsNameTheCodec() async {
    for (networkProtocol, expected) in [
      (NetworkProtocol.grpc, "application/grpc+csv"), (.grpcWeb, "application/grpc-web+csv"),
      (.connect, "application/csv"),
    ] {
      let transport = ScriptedTransport.silent()
      let client = ProtocolClient.scripted(transport) { $0.networkProtocol = networkProtocol }
      let handle = client.unary(.unary, "x", options: CallOptions(codec: CSVCodec())) { _ in }
      transport.virtualExecutor.runUntilIdle()
      XCTAssertEqual(transport.streams[0].request.headers["content-type"], [expected])
      handle.cancel()
    }
  }

  func testInterceptorsSeeTheContentTypeAndTheBytes() async {
    let seen = Events()
    let client = ProtocolClient.scripted(
      ScriptedTransport(Self.csv),
      interceptors: [
        TestInterceptor.make { interceptor in
          interceptor.unaryBytes.requestFunction = { request, proceed in
            seen.add("\(request.contentType) \(String(buffer: request.message))")
            proceed(.success(request))
          }
        }
      ]
    )
    _ = await client.unary(.unary, "x", options: CallOptions(codec: CSVCodec()))
    XCTAssertEqual(seen.all, ["application/csv text\nx\n"])
  }

  func testAnErrorOfTheCodecEndsTheCall() async {
    let transport = self.answering(200, "application/csv", ByteBuffer(string: "nothing"))
    let response = await ProtocolClient.scripted(transport)
      .unary(.unary, "x", options: CallOptions(codec: CSVCodec()))
    XCTAssertEqual(response.code, .dataLoss)
    XCTAssertEqual(response.error?.message, "no line of CSV")
  }

  // MARK: Parsers

  func testAParserSeesStatusHeadersAndBytes() async {
    for (status, contentType, code) in [
      (200, "application/json", "ok"), (200, "text/csv", "unknown"), (204, nil, "unknown"),
      (404, "text/html", "unimplemented"), (502, "text/html", "unavailable"),
      (201, "application/json", "unknown"),
    ] as [(Int, String?, String)] {
      for byteHooks in [false, true] {
        let transport = self.answering(status, contentType, ByteBuffer(string: "body"))
        let client = ProtocolClient.scripted(
          transport,
          interceptors: byteHooks ? [InterceptorProbe().factory("A")] : []
        )
        let response = await client.unary(.unary, "x", options: CallOptions(parser: Self.describing))
        XCTAssertEqual(response.message?.text, "\(status) \(contentType ?? "-") \(code) body")
        XCTAssertEqual(response.code, .ok)
      }
    }
  }

  func testWithoutABody() async {
    let transport = self.answering(204, nil, ByteBuffer())
    let response = await ProtocolClient.scripted(transport)
      .unary(.unary, "x", options: CallOptions(parser: Self.describing))
    XCTAssertEqual(response.message?.text, "204 - unknown ")
  }

  func testAParserThatDeclinesLeavesTheDefault() async {
    let declining = ResponseParser(for: Text.self) { _ in nil }
    let cases: [(ScriptedTransport, Code)] = [
      (.echo(), .ok), (ScriptedTransport { $0.reply(.notFound) }, .notFound),
      (self.answering(200, "text/html", ByteBuffer(string: "x")), .unknown),
    ]
    for (transport, code) in cases {
      let plain = await ProtocolClient.scripted(transport).unary(.unary, "x")
      let response = await ProtocolClient.scripted(transport)
        .unary(.unary, "x", options: CallOptions(parser: declining))
      XCTAssertEqual(response.code, code)
      XCTAssertEqual(response.error?.message, plain.error?.message)
      XCTAssertEqual(response.message, plain.message)
    }
  }

  func testWhatAParserThrowsIsTheCallsError() async {
    struct Failure: Error {}
    let transport = self.answering(503, "text/html", ByteBuffer(string: "<h1>Maintenance</h1>"))
    let cases: [(any Error, Code)] = [(ConnectError(code: .aborted), .aborted), (Failure(), .internalError)]
    for (error, code) in cases {
      let probe = InterceptorProbe()
      let client = ProtocolClient.scripted(transport, interceptors: [probe.factory("A")])
      let parser = ResponseParser(for: Text.self) { _ in throw error }
      let response = await client.unary(.unary, "x", options: CallOptions(parser: parser))
      XCTAssertEqual(response.code, code)
      XCTAssertEqual(response.error?.httpStatus, 503)
      // Byte hooks see the protocol's error, and message hooks the parser's.
      XCTAssertEqual(
        probe.events.outline.suffix(2),
        ["A byte response unavailable", "A message response \(code)"]
      )
    }
  }

  func testAParserOfAnotherTypeIsAnError() async {
    let parser = ResponseParser(for: Int.self) { _ in 7 }
    for method in [TextMethod.unary, .serverStream] {
      if method.streamType == .unary {
        let response = await ProtocolClient.scripted(.echo())
          .unary(method, "x", options: CallOptions(parser: parser))
        XCTAssertEqual(response.code, .internalError)
        XCTAssertEqual(
          response.error?.message,
          "the response parser of /test.Text/Unary gives Int, which is not the method's output"
        )
      } else {
        let transport = ScriptedTransport { stream in
          stream.respondStream()
          stream.sendMessage("\"a\"")
          stream.endStream()
        }
        let stream = ProtocolClient.scripted(transport)
          .serverStream(method, "x", options: CallOptions(parser: parser))
        var last: Code?
        for await result in stream.results { if case .complete(let code, _, _) = result { last = code } }
        XCTAssertEqual(last, .internalError)
      }
    }
  }

  func testAResponseThatBrokeOffIsNotParsed() async {
    for status in [200, 502] {
      let transport = self.answering(status, "text/csv", ByteBuffer(string: "half"), isWhole: false)
      let response = await ProtocolClient.scripted(transport)
        .unary(.unary, "x", options: CallOptions(parser: Self.describing))
      XCTAssertNotNil(response.error, "\(status)")
    }
    let silent = ScriptedTransport { $0.fail(ConnectError(code: .unavailable, message: "refused")) }
    let response = await ProtocolClient.scripted(silent)
      .unary(.unary, "x", options: CallOptions(parser: Self.describing))
    XCTAssertEqual(response.error?.message?.contains("refused"), true)
  }

  func testABodyIsBounded() async {
    for status in [200, 500] {
      // An endless body, which the call must not gather.
      let transport = ScriptedTransport { stream in
        stream.respond(status: status, headers: ["content-type": ["text/html"]])
        for _ in 0..<1000 { stream.send(ByteBuffer(repeating: 32, count: 16 * 1024)) }
      }
      let client = ProtocolClient.scripted(transport) { $0.limits.maximumReceivedMessageSize = 100_000 }
      let response = await client.unary(.unary, "x", options: CallOptions(parser: Self.describing))
      XCTAssertEqual(response.code, .resourceExhausted)
      XCTAssertTrue(transport.streams[0].isCancelled)
    }
  }

  func testAnEncodedBodyIsDecodedFirst() async throws {
    let page = ByteBuffer(string: "<h1>Maintenance</h1>")
    let gzip = try GzipCompressionPool().compress(page)
    let cases: [(String, ByteBuffer, String?)] = [
      ("gzip", gzip, "503 text/html unavailable <h1>Maintenance</h1>"),
      ("identity", page, "503 text/html unavailable <h1>Maintenance</h1>"),
      ("br", page, nil), ("gzip", page, nil),
    ]
    for (encoding, body, expected) in cases {
      let transport = self.answering(503, "text/html", body, headers: ["content-encoding": [encoding]])
      let response = await ProtocolClient.scripted(transport)
        .unary(.unary, "x", options: CallOptions(parser: Self.describing))
      XCTAssertEqual(response.message?.text, expected)
      if expected == nil { XCTAssertEqual(response.code, .unavailable) }
    }
  }

  func testStreamsParseEachMessage() async {
    let transport = ScriptedTransport(StreamChainTests.echo)
    let stream = ProtocolClient.scripted(transport) {
      $0.methodFormats = { _ in MethodFormat(responseParser: Self.describing) }
    }.bidirectionalStream(.bidirectional)
    for message in ["a", "b"] as [Text] { try? await stream.send(message) }
    stream.finish()
    var results: [String] = []
    for await result in stream.results { results.append(result.short) }
    let head = "200 application/connect+json ok"
    XCTAssertEqual(results, ["headers", "\(head) \"a\"", "\(head) \"b\"", "end ok"])
  }

  func testGRPC() async {
    // A proxy's page in place of a response of gRPC.
    let transport = self.answering(502, "text/html", ByteBuffer(string: "<h1>Bad Gateway</h1>"))
    let client = ProtocolClient.scripted(transport) { $0.networkProtocol = .grpc }
    let response = await client.unary(.unary, "x", options: CallOptions(parser: Self.describing))
    XCTAssertEqual(response.message?.text, "502 text/html unavailable <h1>Bad Gateway</h1>")
  }

  func testNotModified() async {
    let transport = self.answering(304, nil, ByteBuffer())
    let options = CallOptions(headers: ["if-none-match": ["\"1\""]], parser: Self.describing)
    let response = await ProtocolClient.scripted(transport).unary(.unary, "x", options: options)
    XCTAssertEqual(response.message?.text, "304 - unknown ")
  }

  func testAnInterceptorsAnswerIsParsed() async {
    let client = ProtocolClient.scripted(
      .silent(),
      interceptors: [
        TestInterceptor.make { interceptor in
          interceptor.unaryBytes.requestFunction = { _, proceed in
            proceed.answer(HTTPResponse(message: ByteBuffer(string: "stored"), httpStatus: 200))
          }
        }
      ]
    )
    let response = await client.unary(.unary, "x", options: CallOptions(parser: Self.describing))
    XCTAssertEqual(response.message?.text, "200 - ok stored")
  }

  func testAParserAndARetry() async {
    let transport = ScriptedTransport.replying([
      { stream in
        stream.respond(status: 503, headers: ["content-type": ["text/html"]])
        stream.send(ByteBuffer(string: "later"))
        stream.end()
      }, { $0.reply($0.sentMessage) },
    ])
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [ScriptedInterceptor.factory(.retry(1), level: .byte)]
    )
    let response = await client.unary(.unary, "x", options: CallOptions(parser: Self.describing))
    XCTAssertEqual(response.message?.text, "200 application/json ok \"x\"")
  }
}

extension CallOptions {
  fileprivate init(headers: Headers = Headers(), codec: (any Codec)? = nil, parser: ResponseParser? = nil) {
    self.init(headers: headers, timeout: nil)
    self.codec = codec
    self.responseParser = parser
  }
}
