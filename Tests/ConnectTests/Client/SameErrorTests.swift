import NIOCore
import XCTest

@testable import Connect

/// The same error, as each protocol says it, is the same for the caller.
final class SameErrorTests: XCTestCase {
  /// All that a caller is told of the end of a call.
  private struct Outcome: Equatable, CustomStringConvertible {
    var code: Code
    var errorCode: Code?
    var message: String?
    var details: [ConnectError.Detail]?
    /// Without the content-type, in which the protocols differ.
    var metadata: Headers?
    var trailers: Headers

    init(code: Code, error: ConnectError?, trailers: Headers) {
      self.code = code
      self.errorCode = error?.code
      self.message = error?.message
      self.details = error?.details
      self.metadata = error?.metadata
      self.metadata?.remove(name: "content-type")
      self.trailers = trailers
    }

    var description: String {
      "\(self.code), \(String(describing: self.errorCode)), \(self.message ?? "no message"), "
        + "\(self.details ?? []), metadata \(self.metadata ?? [:]), trailers \(self.trailers)"
    }
  }

  private static let expected = Outcome(
    code: .failedPrecondition,
    error: ConnectError(
      code: .failedPrecondition,
      message: "no wäy: 100%",
      details: [
        ConnectError.Detail(type: "a.B", value: ByteBuffer(bytes: [0, 1, 255])),
        ConnectError.Detail(type: "c.D", value: ByteBuffer()),
      ],
      metadata: ["x-a": ["1"], "x-b": ["2", "3, 4"], "x-c-bin": ["AAH/"]]
    ),
    trailers: ["x-b": ["2", "3, 4"], "x-c-bin": ["AAH/"]]
  )

  // MARK: The error on the wire

  private static let json =
    #"{"code":"failed_precondition","message":"no wäy: 100%","#
    + #""details":[{"type":"a.B","value":"AAH/"},{"type":"c.D","value":""}]}"#

  /// google.rpc.Status: code 9, the message, Any(type.googleapis.com/a.B, 00 01 ff), Any(type.googleapis.com/c.D).
  private static var status: String {
    func field(_ number: UInt8, _ bytes: some Collection<UInt8>) -> [UInt8] {
      [number << 3 | 2, UInt8(bytes.count)] + bytes
    }
    let first = field(1, "type.googleapis.com/a.B".utf8) + field(2, [0, 1, 255])
    let second = field(1, "type.googleapis.com/c.D".utf8)
    let status = [1 << 3, 9] + field(2, "no wäy: 100%".utf8) + field(3, first) + field(3, second)
    return String(buffer: Base64.encode(ByteBuffer(bytes: status), alphabet: .standard, isPadded: false))
  }

  private static let message = "no w%C3%A4y: 100%25"

  private static let trailers: Headers = [
    "grpc-status": ["9"], "grpc-message": [SameErrorTests.message],
    "grpc-status-details-bin": [SameErrorTests.status],
    "x-b": ["2", "3, 4"], "x-c-bin": ["AAH/"],
  ]

  private static var trailerBlock: ByteBuffer {
    let lines = self.trailers.map { "\($0.name): \($0.value)\r\n" }
    return Envelope.encode(ByteBuffer(string: lines.joined()), flags: GRPCWebTrailers.flag)
  }

  private static func envelope(_ text: String, flags: UInt8 = 0) -> ByteBuffer {
    Envelope.encode(ByteBuffer(string: text), flags: flags)
  }

  /// A response of a stream: so many messages, then the error.
  private static func script(
    _ networkProtocol: NetworkProtocol,
    messages: Int
  ) -> ScriptedTransport.Script {
    let name = networkProtocol.description
    return { stream in
      func respond(_ type: String) {
        stream.respond(headers: ["content-type": [type], "x-a": ["1"]])
      }
      var body = ByteBuffer()
      for _ in 0..<messages { body.writeImmutableBuffer(Self.envelope("\"m\"")) }
      switch name {
      case NetworkProtocol.connect.description:
        respond("application/connect+json")
        let metadata = #"{"X-B":["2","3, 4"],"x-c-bin":["AAH/"]}"#
        let end = #"{"error":\#(Self.json),"metadata":\#(metadata)}"#
        body.writeImmutableBuffer(Self.envelope(end, flags: ConnectEndStream.flag))
        stream.send(body)
        stream.end()
      case NetworkProtocol.grpc.description:
        respond("application/grpc+json")
        if messages > 0 { stream.send(body) }
        stream.end(trailers: Self.trailers)
      case NetworkProtocol.grpcWeb.description:
        respond("application/grpc-web+json")
        body.writeImmutableBuffer(Self.trailerBlock)
        stream.send(body)
        stream.end()
      default:
        respond("application/grpc-web-text+json")
        body.writeImmutableBuffer(Self.trailerBlock)
        stream.send(Base64.encode(body, alphabet: .standard, isPadded: true))
        stream.end()
      }
    }
  }

  private static let unaryConnect: ScriptedTransport.Script = { stream in
    stream.respond(
      status: 400,
      headers: [
        "content-type": ["application/json"], "x-a": ["1"], "trailer-x-b": ["2", "3, 4"],
        "trailer-x-c-bin": ["AAH/"],
      ]
    )
    stream.send(ByteBuffer(string: SameErrorTests.json))
    stream.end()
  }

  /// gRPC, with the status in the headers of a response that has nothing else.
  private static let trailersOnly: ScriptedTransport.Script = { stream in
    var headers: Headers = ["content-type": ["application/grpc+json"], "x-a": ["1"]]
    headers.append(contentsOf: SameErrorTests.trailers)
    stream.respond(headers: headers)
    stream.end()
  }

  private static let all: [NetworkProtocol] = [.connect, .grpc, .grpcWeb, .grpcWebText]

  private func client(
    _ networkProtocol: NetworkProtocol,
    _ script: @escaping ScriptedTransport.Script
  ) -> ProtocolClient {
    .scripted(ScriptedTransport(script)) { $0.networkProtocol = networkProtocol }
  }

  // MARK: Calls

  func testUnary() async throws {
    for networkProtocol in Self.all {
      let isConnect = networkProtocol == .connect
      let script = isConnect ? Self.unaryConnect : Self.script(networkProtocol, messages: 0)
      let response = await self.client(networkProtocol, script).unary(.unary, "hello")
      let outcome = Outcome(code: response.code, error: response.error, trailers: response.trailers)
      XCTAssertEqual(outcome, Self.expected, "\(networkProtocol)")
      XCTAssertEqual(response.headers["x-a"], ["1"], "\(networkProtocol)")
      XCTAssertEqual(response.error?.httpStatus, isConnect ? 400 : 200, "\(networkProtocol)")
    }
  }

  func testClientStream() async throws {
    for networkProtocol in Self.all {
      let client = self.client(networkProtocol, Self.script(networkProtocol, messages: 0))
      let response = await client.clientStream(.clientStream).closeAndReceive()
      let outcome = Outcome(code: response.code, error: response.error, trailers: response.trailers)
      XCTAssertEqual(outcome, Self.expected, "\(networkProtocol)")
      XCTAssertEqual(response.headers["x-a"], ["1"], "\(networkProtocol)")
      XCTAssertEqual(response.error?.httpStatus, 200, "\(networkProtocol)")
    }
  }

  func testStreams() async throws {
    for networkProtocol in Self.all {
      for count in 0...2 {
        let client = self.client(networkProtocol, Self.script(networkProtocol, messages: count))
        let bidirectional = client.bidirectionalStream(.bidirectional)
        bidirectional.finish()
        for results in [client.serverStream(.serverStream, "hello").results, bidirectional.results] {
          try await self.expect(results, messages: count, "\(networkProtocol), \(count) messages")
        }
      }
    }
  }

  private func expect(_ results: StreamResults<Text>, messages: Int, _ what: String) async throws {
    var messageCount = 0
    var outcomes: [Outcome] = []
    for await result in results {
      switch result {
      case .headers(let headers):
        XCTAssertEqual(headers["x-a"], ["1"], what)
      case .message(let message):
        XCTAssertEqual(message, "m", what)
        messageCount += 1
      case .complete(let code, let error, let trailers):
        outcomes.append(Outcome(code: code, error: error, trailers: trailers))
        XCTAssertEqual(error?.httpStatus, 200, what)
      }
    }
    XCTAssertEqual(messageCount, messages, what)
    XCTAssertEqual(outcomes, [Self.expected], what)
  }

  /// Where there is nothing but headers, what would be headers elsewhere counts as trailers, too.
  func testTrailersOnly() async throws {
    var expected = Self.expected
    expected.trailers = ["x-a": ["1"]]
    expected.trailers.append(contentsOf: Self.expected.trailers)
    let client = self.client(.grpc, Self.trailersOnly)
    let unary = await client.unary(.unary, "hello")
    XCTAssertEqual(Outcome(code: unary.code, error: unary.error, trailers: unary.trailers), expected)
    for await result in client.serverStream(.serverStream, "hello").results {
      guard case .complete(let code, let error, let trailers) = result else { continue }
      XCTAssertEqual(Outcome(code: code, error: error, trailers: trailers), expected)
    }
  }
}
