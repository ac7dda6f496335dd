internal import Connect
internal import LoopbackServer
internal import NIOCore
internal import SwiftProtobuf
import XCTest

/// Responses that are whole as HTTP and wrong as Connect: each call fails once, with the right code.
final class BadResponseTests: XCTestCase {
  private struct Response: Sendable {
    var name: String
    var status = 200
    var headers: HeaderFields
    var body: [UInt8] = []
    var expected: ExpectedError
    /// The messages of a stream that arrive before the error.
    var messages = 0
  }

  // MARK: Unary

  private static let proto: HeaderFields = ["content-type": "application/proto"]

  private let unaryResponses: [Response] = [
    Response(
      name: "garbage",
      headers: proto,
      body: [0xff, 0xff, 0xff],
      expected: ExpectedError(.internalError, "could not be decoded")
    ),
    Response(
      name: "html",
      headers: ["content-type": "text/html"],
      body: Array("<html></html>".utf8),
      expected: ExpectedError(.unknown, "content-type 'text/html'")
    ),
    Response(
      name: "no-content-type",
      headers: [:],
      expected: ExpectedError(.unknown, "no content-type")
    ),
    Response(
      name: "other-codec",
      headers: ["content-type": "application/json"],
      body: Array("{}".utf8),
      expected: ExpectedError(.internalError, "content-type 'application/json'")
    ),
    Response(
      name: "stream-content-type",
      headers: ["content-type": "application/connect+proto"],
      expected: ExpectedError(.unknown, "application/connect+proto")
    ),
    Response(
      name: "unknown-encoding",
      headers: ["content-type": "application/proto", "content-encoding": "br"],
      body: [1, 2, 3],
      expected: ExpectedError(.internalError, "'br'")
    ),
    Response(
      name: "too-large",
      headers: proto,
      body: [UInt8](repeating: 0, count: 5000),
      expected: ExpectedError(.resourceExhausted, "4096")
    ),
    Response(
      name: "bad-gateway",
      status: 502,
      headers: ["content-type": "text/html"],
      body: Array("<html>502 Bad Gateway</html>".utf8),
      expected: ExpectedError(.unavailable, "502")
    ),
    Response(
      name: "error-without-code",
      status: 403,
      headers: ["content-type": "application/json"],
      body: Array(#"{"code":"no such code","message":"kept"}"#.utf8),
      expected: ExpectedError(.permissionDenied, "kept")
    ),
    Response(
      name: "error-that-is-no-json",
      status: 429,
      headers: ["content-type": "application/json"],
      body: Array("{".utf8),
      expected: ExpectedError(.unavailable, "429")
    ),
    Response(
      name: "redirect",
      status: 301,
      headers: ["location": "/elsewhere"],
      expected: ExpectedError(.unknown, "301")
    ),
    Response(
      name: "not-modified",
      status: 304,
      headers: [:],
      expected: ExpectedError(.unknown, "304")
    ),
    Response(
      name: "no-content",
      status: 204,
      headers: proto,
      expected: ExpectedError(.unknown, "204")
    ),
    Response(
      name: "teapot",
      status: 418,
      headers: ["content-type": "text/plain"],
      body: Array("I am a teapot".utf8),
      expected: ExpectedError(.unknown, "418")
    ),
    Response(
      name: "status-that-is-none",
      status: 800,
      headers: ["content-type": "text/plain"],
      body: Array("beyond".utf8),
      expected: ExpectedError(.unknown, "800")
    ),
  ]

  func testUnary() async throws {
    for version in Version.allCases {
      try await EmbeddedServer.run(version, configure: { $1.limits.maximumReceivedMessageSize = 4096 }) {
        embedded in
        for response in self.unaryResponses {
          let what = "\(response.name), \(version.rawValue)"
          self.serve(response, on: embedded.server)
          let error = try await embedded.client.expectFailure(
            unaryMethod("/\(response.name)"),
            response.expected,
            what
          )
          XCTAssertEqual(error?.httpStatus, response.status, what)
          let after = await embedded.client.unary(TestMethods.echo, EchoRequest())
          XCTAssertEqual(after.code, .ok, "after \(what)")
        }
      }
    }
  }

  // MARK: Streams

  private static let connect: HeaderFields = ["content-type": "application/connect+proto"]
  /// A `CountResponse` with the number 1.
  private static let message: [UInt8] = [0, 0, 0, 0, 2, 8, 1]
  private static let end: [UInt8] = [2, 0, 0, 0, 2] + Array("{}".utf8)

  private let streamResponses: [Response] = [
    Response(
      name: "garbage",
      headers: connect,
      body: message + [0, 0, 0, 0, 2, 0xff, 0xff] + end,
      expected: ExpectedError(.internalError, "could not be decoded"),
      messages: 1
    ),
    Response(
      name: "truncated-prefix",
      headers: connect,
      body: message + [0, 0, 0],
      expected: ExpectedError(.internalError),
      messages: 1
    ),
    Response(
      name: "truncated-message",
      headers: connect,
      body: message + [0, 0, 0, 0, 9, 1],
      expected: ExpectedError(.internalError),
      messages: 1
    ),
    Response(
      name: "no-end",
      headers: connect,
      body: message + message,
      expected: ExpectedError(.internalError, "end"),
      messages: 2
    ),
    Response(
      name: "empty",
      headers: connect,
      expected: ExpectedError(.internalError, "end")
    ),
    Response(
      name: "too-large",
      headers: connect,
      body: message + [0, 0xff, 0xff, 0xff, 0xff, 1],
      expected: ExpectedError(.resourceExhausted, "4294967295"),
      messages: 1
    ),
    Response(
      name: "unknown-flags",
      headers: connect,
      body: message + [0x44, 0, 0, 0, 0] + end,
      expected: ExpectedError(.internalError, "flag"),
      messages: 1
    ),
    Response(
      name: "compressed-without-encoding",
      headers: connect,
      body: message + [1, 0, 0, 0, 0] + end,
      expected: ExpectedError(.internalError),
      messages: 1
    ),
    Response(
      name: "message-after-end",
      headers: connect,
      body: message + end + message,
      expected: ExpectedError(.internalError),
      messages: 1
    ),
    Response(
      name: "end-that-is-no-json",
      headers: connect,
      body: message + [2, 0, 0, 0, 1, 0x7b],
      expected: ExpectedError(.internalError, "end-of-stream"),
      messages: 1
    ),
    Response(
      name: "error-without-code",
      headers: connect,
      body: [2, 0, 0, 0, 33] + Array(#"{"error":{"message":"just this"}}"#.utf8),
      expected: ExpectedError(.unknown, "just this")
    ),
    Response(
      name: "foreign",
      headers: ["content-type": "application/grpc"],
      body: message,
      expected: ExpectedError(.unknown, "application/grpc")
    ),
    Response(
      name: "other-codec",
      headers: ["content-type": "application/connect+json"],
      body: end,
      expected: ExpectedError(.internalError, "application/connect+json")
    ),
    Response(
      name: "unknown-encoding",
      headers: ["content-type": "application/connect+proto", "connect-content-encoding": "br"],
      body: end,
      expected: ExpectedError(.internalError, "'br'")
    ),
    Response(
      name: "bad-gateway",
      status: 502,
      headers: ["content-type": "text/html"],
      body: Array("<html>502 Bad Gateway</html>".utf8),
      expected: ExpectedError(.unavailable, "502")
    ),
    Response(
      name: "teapot",
      status: 418,
      headers: ["content-type": "text/plain"],
      body: Array("I am a teapot".utf8),
      expected: ExpectedError(.unknown, "418")
    ),
    Response(
      name: "status-that-is-none",
      status: 800,
      headers: ["content-type": "text/plain"],
      body: Array("beyond".utf8),
      expected: ExpectedError(.unknown, "800")
    ),
  ]

  func testStreams() async throws {
    for version in Version.allCases {
      try await EmbeddedServer.run(version, configure: { $1.limits.maximumReceivedMessageSize = 4096 }) {
        embedded in
        for response in self.streamResponses {
          let what = "\(response.name), \(version.rawValue)"
          self.serve(response, on: embedded.server)
          try await embedded.client.expectStreamFailure(
            streamMethod("/\(response.name)"),
            response.expected,
            what,
            messages: response.messages
          )
          let after = await embedded.client.unary(TestMethods.echo, EchoRequest())
          XCTAssertEqual(after.code, .ok, "after \(what)")
        }
      }
    }
  }

  /// A client stream wants exactly one message, whatever the protocol.
  func testClientStreamsWithoutOneMessage() async throws {
    let ok: HeaderFields = ["grpc-status": "0"]
    let block = Array("grpc-status: 0\r\n".utf8)
    let endings: [(NetworkProtocol, String, [UInt8], HeaderFields)] = [
      (.connect, "application/connect+proto", Self.end, [:]),
      (.grpc, "application/grpc+proto", [], ok),
      (.grpcWeb, "application/grpc-web+proto", [0x80, 0, 0, 0, UInt8(block.count)] + block, [:]),
    ]
    for (networkProtocol, contentType, end, trailers) in endings {
      let isGRPC = networkProtocol == .grpc
      for version in Version.allCases where version == .http2 || !isGRPC {
        try await EmbeddedServer.run(version, configure: { $1.networkProtocol = networkProtocol }) {
          embedded in
          for (name, messages) in [("none", []), ("two", Self.message + Self.message)] {
            embedded.server.onRaw("/\(name)") { request, responder in
              _ = try await request.body()
              try await responder.respond(
                headers: ["content-type": contentType],
                body: ByteBuffer(bytes: messages + end),
                trailers: trailers
              )
            }
            let method = MethodSpec<SumRequest, SumResponse>(path: "/\(name)", streamType: .clientStream)
            let response = await embedded.client.clientStream(method).closeAndReceive()
            XCTAssertEqual(response.code, .unimplemented, "\(name), \(networkProtocol), \(version.rawValue)")
          }
        }
      }
    }
  }

  /// The HTTP status counts in every protocol where the response has no status of the protocol's own.
  func testHTTPStatusesInGRPC() async throws {
    let settings: [(NetworkProtocol, Version)] = [(.grpc, .http2), (.grpcWeb, .http1), (.grpcWeb, .http2)]
    for (networkProtocol, version) in settings {
      try await EmbeddedServer.run(version, configure: { $1.networkProtocol = networkProtocol }) { embedded in
        for (status, code) in [(418, Code.unknown), (800, .unknown), (502, .unavailable)] {
          let what = "\(networkProtocol), \(version.rawValue), \(status)"
          self.serve(
            Response(
              name: "status",
              status: status,
              headers: ["content-type": "text/plain"],
              body: Array("text".utf8),
              expected: ExpectedError(code, "\(status)")
            ),
            on: embedded.server
          )
          let expected = ExpectedError(code, "\(status)")
          let error = try await embedded.client.expectFailure(unaryMethod("/status"), expected, what)
          XCTAssertEqual(error?.httpStatus, status, what)
          try await embedded.client.expectStreamFailure(streamMethod("/status"), expected, what)
        }
      }
    }
  }

  private func serve(_ response: Response, on server: LoopbackServer) {
    server.onRaw("/\(response.name)") { request, responder in
      _ = try await request.body()
      try await responder.respond(
        status: response.status,
        headers: response.headers,
        body: ByteBuffer(bytes: response.body)
      )
    }
  }
}
