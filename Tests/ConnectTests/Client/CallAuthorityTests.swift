import NIOCore
import XCTest

@testable import Connect

/// What becomes of ``CallOptions/authority`` above the transport.
final class CallAuthorityTests: XCTestCase {
  private static let read = TextMethod(
    codablePath: "/test.Text/Read",
    streamType: .unary,
    idempotencyLevel: .noSideEffects
  )

  func testWhatTheTransportIsTold() async throws {
    for networkProtocol in [NetworkProtocol.connect, .grpc, .grpcWeb] {
      for get in [UnaryGET.disabled, .alwaysEnabled] {
        let transport = ScriptedTransport { $0.reply("\"ok\"") }
        let client = ProtocolClient.scripted(transport) {
          $0.networkProtocol = networkProtocol
          $0.unaryGET = get
        }
        _ = await client.unary(Self.read, "a", options: CallOptions(authority: "api.example:8443"))
        _ = await client.unary(Self.read, "a")
        XCTAssertEqual(transport.streams.map(\.request.authority), ["api.example:8443", nil])
        // The call goes where all calls go.
        XCTAssertEqual(transport.streams.first?.request.headers["host"], [])
      }
    }
  }

  func testStreams() async throws {
    let transport = ScriptedTransport { stream in
      stream.respondStream()
      stream.endStream()
    }
    let client = ProtocolClient.scripted(transport)
    let method = TextMethod(codablePath: "/test.Text/Watch", streamType: .serverStream)
    for try await _ in client.serverStream(method, "a", options: CallOptions(authority: "api.example"))
      .results
    {}
    XCTAssertEqual(transport.streams.map(\.request.authority), ["api.example"])
  }

  func testRepeatedRequests() async throws {
    let transport = ScriptedTransport { stream in
      stream.fail(ConnectError(code: .unavailable), isUnprocessed: true)
    }
    let client = ProtocolClient.scripted(transport)
    _ = await client.unary(.unary, "a", options: CallOptions(authority: "api.example"))
    XCTAssertGreaterThan(transport.streams.count, 1)
    XCTAssertEqual(Set(transport.streams.map(\.request.authority)), ["api.example"])
  }

  /// Hooks see and change it. A newly created request inherits it.
  func testHooks() async throws {
    func sent(
      _ changes: (@Sendable (HTTPRequest<ByteBuffer>) -> HTTPRequest<ByteBuffer>)...
    ) async -> [String?] {
      let transport = ScriptedTransport { $0.reply("\"ok\"") }
      let interceptors = changes.map { change in
        TestInterceptor.make { interceptor in
          interceptor.unaryBytes = UnaryFunction(requestFunction: { request, proceed in
            proceed(.success(change(request)))
          })
        }
      }
      let client = ProtocolClient.scripted(transport, interceptors: interceptors)
      _ = await client.unary(.unary, "a", options: CallOptions(authority: "api.example"))
      return transport.streams.map(\.request.authority)
    }
    let changed = await sent { request in
      var request = request
      XCTAssertEqual(request.authority, "api.example")
      request.authority = "other.example"
      return request
    }
    XCTAssertEqual(changed, ["other.example"])
    let new = await sent { request in
      HTTPRequest(
        url: request.url,
        contentType: request.contentType,
        headers: request.headers,
        message: request.message,
        context: request.context
      )
    }
    XCTAssertEqual(new, ["api.example"])
    let removed = await sent { request in
      var request = request
      request.authority = nil
      return request
    }
    XCTAssertEqual(removed, [nil])
    // A newly created request, then a copy of it.
    let removedLater = await sent(
      { request in HTTPRequest(url: request.url, contentType: request.contentType, message: request.message)
      },
      { request in
        var request = request
        XCTAssertEqual(request.authority, "api.example")
        request.authority = nil
        return request
      }
    )
    XCTAssertEqual(removedLater, [nil])
  }

  /// Call hooks change their request in place.
  func testCallHooks() async throws {
    let transport = ScriptedTransport { $0.reply("\"ok\"") }
    let interceptor = TestInterceptor.make { interceptor in
      interceptor.call = CallFunction(requestFunction: { request in request.authority = nil })
    }
    let client = ProtocolClient.scripted(transport, interceptors: [interceptor])
    _ = await client.unary(.unary, "a", options: CallOptions(authority: "api.example"))
    XCTAssertEqual(transport.streams.map(\.request.authority), [nil])
  }

  func testBadAuthorities() async throws {
    for authority in ["", "a b", "u:p@a", "a/b", "https://a", "a:b", "a\r\nx: y"] {
      let transport = ScriptedTransport { $0.reply("\"ok\"") }
      let client = ProtocolClient.scripted(transport)
      let response = await client.unary(.unary, "a", options: CallOptions(authority: authority))
      XCTAssertEqual(response.code, .invalidArgument, authority)
      XCTAssertTrue(response.error?.message?.contains("authority") == true, "\(response)")
      XCTAssertEqual(transport.streams.count, 0)
    }
  }

  func testTheHeaderIsStillRefused() async throws {
    let client = ProtocolClient.scripted(ScriptedTransport { $0.reply("\"ok\"") })
    let response = await client.unary(.unary, "a", options: CallOptions(headers: ["host": ["a"]]))
    XCTAssertEqual(response.code, .invalidArgument)
    XCTAssertTrue(response.error?.message?.contains("set the authority of the call's options") == true)
  }
}
