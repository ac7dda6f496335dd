import Connect
import ConnectTesting
import NIOCore
import XCTest

/// Which requests the transport may send as early data.
final class SideEffectTests: XCTestCase {
  /// What the transport is told of the streams of one unary call.
  private func claims(
    _ method: TextMethod,
    _ scripts: [ScriptedTransport.Script] = [{ $0.reply($0.sentMessage) }],
    changing change: (@Sendable (inout HTTPRequest<ByteBuffer>) -> Void)? = nil,
    interceptors: [InterceptorFactory] = [],
    configure: (inout ProtocolClientConfig) -> Void = { _ in }
  ) async -> [Bool] {
    let transport = ScriptedTransport.replying(scripts)
    let changing = change.map { change in
      TestInterceptor.make { interceptor in
        interceptor.unaryBytes.requestFunction = { request, proceed in
          var request = request
          change(&request)
          proceed(.success(request))
        }
      }
    }
    let client = ProtocolClient.scripted(
      transport,
      interceptors: interceptors + (changing.map { [$0] } ?? []),
      configure: configure
    )
    _ = await client.unary(method, "x")
    return transport.streams.map(\.request.hasNoSideEffects)
  }

  private static func method(_ level: IdempotencyLevel) -> TextMethod {
    TextMethod(codablePath: "/test.Text/Read", streamType: .unary, idempotencyLevel: level)
  }

  private static let refused: ScriptedTransport.Script = {
    $0.fail(ConnectError(code: .unavailable, message: "refused"), isUnprocessed: true)
  }

  func testUnaryCalls() async {
    for (level, expected) in [(.noSideEffects, true), (.idempotent, false), (.unknown, false)]
      as [(IdempotencyLevel, Bool)]
    {
      let claims = await self.claims(Self.method(level))
      XCTAssertEqual(claims, [expected], "\(level)")
      let prefixed = await self.claims(
        Self.method(level),
        configure: { $0.host = "http://scripted.test/prefix" }
      )
      XCTAssertEqual(prefixed, [expected], "\(level)")
      let get = await self.claims(Self.method(level), configure: { $0.unaryGET = .alwaysEnabled })
      XCTAssertEqual(get, [expected], "\(level)")
    }
  }

  /// A server may process the messages of a stream before it knows whether the client has sent them.
  func testStreams() async {
    let transport = ScriptedTransport {
      $0.onFinish = {
        $0.respondStream(); $0.endStream()
      }
    }
    let client = ProtocolClient.scripted(transport)
    func method(_ type: StreamType) -> TextMethod {
      TextMethod(codablePath: "/test.Text/Stream", streamType: type, idempotencyLevel: .noSideEffects)
    }
    for await _ in client.serverStream(method(.serverStream), "x").results {}
    let both = client.bidirectionalStream(method(.bidirectionalStream))
    both.finish()
    for await _ in both.results {}
    let up = client.clientStream(method(.clientStream))
    _ = await up.closeAndReceive()
    XCTAssertEqual(transport.streams.map(\.request.hasNoSideEffects), [false, false, false])
  }

  func testInterceptorsThatChangeTheMethod() async {
    let read = Self.method(.noSideEffects)
    let write = MethodInfo(path: "/test.Text/Write", streamType: .unary)
    let list = MethodInfo(path: "/test.Text/List", streamType: .unary, idempotencyLevel: .noSideEffects)
    let other = await self.claims(read, changing: { $0.url.path = write.path })
    XCTAssertEqual(other, [false], "another path")
    let otherMethod = await self.claims(read, changing: { $0.method = write })
    XCTAssertEqual(otherMethod, [false], "another method")
    let both = await self.claims(
      read,
      changing: {
        $0.url.path = write.path
        $0.method = write
      }
    )
    XCTAssertEqual(both, [false], "both")
    let safe = await self.claims(
      read,
      changing: {
        $0.url.path = list.path
        $0.method = list
      }
    )
    XCTAssertEqual(safe, [true], "another method without side effects")
    let moved = await self.claims(read, changing: { $0.url.path = "/v2" + $0.url.path })
    XCTAssertEqual(moved, [true], "the same method elsewhere")
    let unsafe = await self.claims(Self.method(.unknown), changing: { $0.method = list })
    XCTAssertEqual(unsafe, [false], "the method that was called counts, too")
  }

  /// What a server has not taken as early data must not be sent as early data again (RFC 8470, section 5.2).
  func testResends() async {
    let retrying = TestInterceptor.make { interceptor in
      interceptor.unaryBytes.responseFunction = { response, proceed in
        if response.error != nil { proceed.retry() } else { proceed(response) }
      }
    }
    let answered: ScriptedTransport.Script = { $0.reply($0.sentMessage) }
    let resent = await self.claims(Self.method(.noSideEffects), [Self.refused, answered])
    XCTAssertEqual(resent, [true, false])
    let retried = await self.claims(
      Self.method(.noSideEffects),
      [Self.refused, Self.refused, answered],
      interceptors: [retrying]
    )
    XCTAssertEqual(retried, [true, false, false])
    let failed: ScriptedTransport.Script = { $0.fail(ConnectError(code: .unavailable)) }
    let again = await self.claims(Self.method(.noSideEffects), [failed, answered], interceptors: [retrying])
    XCTAssertEqual(again, [true, true], "an ordinary retry")
  }

  /// Connections that never came about do not use up the transparent retry.
  func testConnectionsThatNeverCameAbout() async {
    let gone: ScriptedTransport.Script = { stream in
      var failure = HTTPStreamFailure(
        error: ConnectError(code: .unavailable, message: "gone"),
        isUnprocessed: true
      )
      failure.keepsTransparentRetry = true
      stream.fail(failure)
    }
    let answered: ScriptedTransport.Script = { $0.reply($0.sentMessage) }
    let claims = await self.claims(Self.method(.noSideEffects), [gone, gone, gone, Self.refused, answered])
    XCTAssertEqual(claims, [true, false, false, false, false])
    let transport = ScriptedTransport.replying([gone, Self.refused, gone, Self.refused])
    let response = await ProtocolClient.scripted(transport).unary(Self.method(.unknown), "x")
    XCTAssertEqual(response.error?.message, "refused")
    XCTAssertEqual(transport.streams.count, 4)
    // There is an end to it.
    let endless = ScriptedTransport.replying(Array(repeating: gone, count: 200))
    let last = await ProtocolClient.scripted(endless).unary(Self.method(.unknown), "x")
    XCTAssertEqual(last.error?.message, "gone")
    XCTAssertEqual(endless.streams.count, 102)
  }
}
