internal import Connect
internal import ConnectNIO
internal import LoopbackServer
internal import SwiftProtobuf
import XCTest

/// Responses that break gRPC's rules, from a third-party HTTP/2 server: each gives one error with the right code.
final class GRPCMisbehavingTests: XCTestCase {
  /// Its `grpc-ok` echoes bytes: the payload of a request is the payload of the response.
  private let request = EchoRequest.with { $0.payload.text = "echo" }

  private func withClient(_ body: (ProtocolClient) async throws -> Void) async throws {
    let server = try await PythonServer.shared(.misbehaving)
    let host = "http://127.0.0.1:\(try server.port("normal"))"
    try await withPlainClient(
      .http2,
      host: host,
      configure: { http, config in
        http.version = .automatic
        config.networkProtocol = .grpc
      },
      body
    )
  }

  func testEachFailureOfAUnaryCall() async throws {
    let cases: [(name: String, expected: ExpectedError)] = [
      ("grpc-no-trailers", ExpectedError(.internalError, "grpc-status")),
      ("grpc-status-in-headers", ExpectedError(.internalError, "grpc-status")),
      ("grpc-error-in-headers", ExpectedError(.internalError, "grpc-status")),
      ("grpc-other-status-in-trailers", ExpectedError(.failedPrecondition)),
      ("grpc-trailers-only", ExpectedError(.notFound, "not here")),
      ("grpc-trailers-only-ok", ExpectedError(.unimplemented)),
      ("grpc-status-before-empty-data", ExpectedError(.notFound, "not here")),
      ("grpc-status-before-empty-trailers", ExpectedError(.notFound, "not here")),
      ("grpc-headers-only", ExpectedError(.internalError, "grpc-status")),
      ("grpc-no-status", ExpectedError(.unknown, "grpc-status")),
      ("grpc-unknown-status", ExpectedError(.unknown, "later")),
      ("grpc-status-no-number", ExpectedError(.unknown, "later")),
      ("grpc-bad-escapes", ExpectedError(.internalError, "100% %zz 中 %f %")),
      ("grpc-details-no-base64", ExpectedError(.failedPrecondition, "m")),
      ("grpc-details-no-status", ExpectedError(.failedPrecondition, "m")),
      ("grpc-details-differ", ExpectedError(.aborted, "inner")),
      ("grpc-huge-trailers", ExpectedError(.resourceExhausted, "limit of 65536 bytes")),
      ("grpc-no-message", ExpectedError(.unimplemented)),
      ("grpc-two-messages", ExpectedError(.unimplemented)),
      ("grpc-truncated-message", ExpectedError(.internalError)),
      ("grpc-truncated-prefix", ExpectedError(.internalError)),
      ("grpc-truncated-message-with-error", ExpectedError(.unavailable)),
      ("grpc-endless-message", ExpectedError(.resourceExhausted, "4294967295")),
      ("grpc-bad-flags", ExpectedError(.internalError, "flags")),
      ("grpc-web-trailers", ExpectedError(.internalError, "flags")),
      ("grpc-unknown-encoding", ExpectedError(.internalError, "lz99")),
      ("grpc-unused-unknown-encoding", ExpectedError(.internalError, "lz99")),
      ("grpc-compressed-without-encoding", ExpectedError(.internalError)),
      ("grpc-compressed-identity", ExpectedError(.internalError)),
      ("grpc-broken-gzip", ExpectedError(.internalError)),
      ("grpc-foreign-type", ExpectedError(.unknown, "application/json")),
      ("grpc-other-codec", ExpectedError(.internalError, "thrift")),
      ("bad-gateway", ExpectedError(.unavailable, "502")),
      ("no-such-behaviour", ExpectedError(.unimplemented, "404")),
      ("refused", ExpectedError(.unavailable, "REFUSED_STREAM")),
      ("enhance-your-calm", ExpectedError(.resourceExhausted, "ENHANCE_YOUR_CALM")),
      ("internal-error", ExpectedError(.internalError, "INTERNAL_ERROR")),
      ("cancel", ExpectedError(.canceled, "CANCEL")),
      ("inadequate-security", ExpectedError(.permissionDenied, "INADEQUATE_SECURITY")),
      ("no-error", ExpectedError(.internalError, "NO_ERROR")),
      ("goaway-error", ExpectedError(.unavailable, "GOAWAY")),
      ("close-before-headers", ExpectedError(.unavailable)),
      ("close-mid-stream", ExpectedError(.unavailable)),
    ]
    for (name, expected) in cases {
      try await self.withClient { client in
        try await client.expectFailure(unaryMethod("/\(name)"), expected, name, request: self.request)
        let response = await client.unary(unaryMethod("/grpc-ok"), self.request)
        XCTAssertEqual(response.message?.payload.text, "echo", "after \(name): \(response)")
      }
    }
  }

  /// The messages that arrived before are delivered.
  func testEachFailureOfAStream() async throws {
    let cases: [(name: String, expected: ExpectedError, messages: Int)] = [
      ("grpc-no-trailers", ExpectedError(.internalError, "grpc-status"), 1),
      ("grpc-error-in-headers", ExpectedError(.internalError, "grpc-status"), 1),
      ("grpc-other-status-in-trailers", ExpectedError(.failedPrecondition), 1),
      ("grpc-truncated-message", ExpectedError(.internalError), 0),
      ("grpc-truncated-prefix", ExpectedError(.internalError), 1),
      ("grpc-compressed-without-encoding", ExpectedError(.internalError), 0),
      ("grpc-bad-flags", ExpectedError(.internalError, "flags"), 0),
      ("grpc-unknown-status", ExpectedError(.unknown, "later"), 1),
      ("grpc-huge-trailers", ExpectedError(.resourceExhausted, "limit of 65536 bytes"), 1),
      ("bad-gateway", ExpectedError(.unavailable, "502"), 0),
    ]
    for (name, expected, messages) in cases {
      try await self.withClient { client in
        try await client.expectStreamFailure(streamMethod("/\(name)"), expected, name, messages: messages)
      }
    }
  }

  func testWhatIsAllowed() async throws {
    let names = [
      "grpc-ok", "grpc-reset-after-trailers", "grpc-other-status-in-headers", "grpc-plain-type",
      "grpc-type-with-parameter",
    ]
    for name in names {
      try await self.withClient { client in
        let response = await client.unary(unaryMethod("/\(name)"), self.request)
        XCTAssertEqual(response.message?.payload.text, "echo", "\(name): \(response)")
        XCTAssertEqual(response.code, .ok, name)
      }
    }
    try await self.withClient { client in
      for name in [
        "grpc-two-messages", "grpc-no-message", "grpc-trailers-only-ok", "grpc-ok-before-empty-data",
        "grpc-ok-before-empty-trailers",
      ] {
        let outcome = await client.serverStream(streamMethod("/\(name)"), CountRequest()).results.collect()
        XCTAssertEqual(outcome.code, .ok, "\(name): \(String(describing: outcome.error))")
        XCTAssertEqual(outcome.messages.count, name == "grpc-two-messages" ? 2 : 0, name)
      }
    }
  }
}
