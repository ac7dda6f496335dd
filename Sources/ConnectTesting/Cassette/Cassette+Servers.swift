package import Connect
internal import NIOCore

extension InMemoryTransport {
  /// Answers the calls of a cassette's methods from the cassette, from now on.
  ///
  /// A call that the cassette does not have fails with `failed_precondition`; the message shows what was asked. Recorded calls
  /// that were never asked are in ``Cassette/unusedCalls``.
  ///
  /// - Parameters:
  ///   - cassette: The recorded calls; each answers one call.
  ///   - timing: When the parts of a response come.
  public func play(_ cassette: Cassette, timing: CassetteTransport.Timing = .atOnce) {
    for (path, handler) in CassettePlayer(cassette, timing: timing).handlers { self.onRaw(path, handler) }
  }
}

/// A server in memory that answers from a cassette.
package struct CassettePlayer: Sendable {
  private let cassette: Cassette
  private let isTimed: Bool

  package init(_ cassette: Cassette, timing: CassetteTransport.Timing) {
    self.cassette = cassette
    self.isTimed = timing == .recorded
  }

  /// The handlers of the cassette's methods, each with its path.
  package var handlers: [(path: String, handler: InMemoryTransport.RawHandler)] {
    self.cassette.methodCounts.keys.sorted().map { (path: $0, handler: self.answer) }
  }

  private func answer(_ exchange: any ServerExchange) async throws {
    let head = exchange.head
    let request = RequestReader(
      self.cassette.rules,
      method: head.method,
      path: head.path,
      query: head.query,
      headers: head.headers,
      authority: head.authority
    )
    var session = ReplaySession(self.cassette, request)
    do {
      while true {
        switch session.next() {
        case .wait:
          guard let bytes = try await exchange.nextChunk() else {
            guard !session.isFinished else { return await exchange.waitUntilClosed() }
            session.finish()
            continue
          }
          session.receive(bytes)
        case .serve(let delay):
          if self.isTimed, delay > .zero { try await exchange.sleep(for: delay) }
          guard let part = session.take() else { continue }
          try await exchange.serve(part)
        case .miss(let error):
          self.cassette.addMiss(error.message ?? "")
          return await exchange.fail(HTTPStreamFailure(error: error))
        case .over: return
        }
      }
    } catch {
      session.cancel()
      throw error
    }
  }
}

extension ServerExchange {
  fileprivate func serve(_ part: ExchangeScript.ServedPart) async throws {
    switch part {
    case .head(let head): try await self.sendHead(status: head.status, headers: head.headers)
    case .body(let bytes): try await self.sendBody(bytes)
    case .end(let trailers): try await self.sendEnd(ByteBuffer(), trailers: trailers)
    case .fail(let failure): await self.fail(failure)
    }
  }

  /// Ends the stream with a failure. A stream that is not in memory is reset instead.
  fileprivate func fail(_ failure: HTTPStreamFailure) async {
    guard let exchange = self as? any FailableExchange else {
      return await self.reset(code: failure.error.code.http2ErrorCode)
    }
    exchange.failLater(failure)
  }
}

extension Code {
  /// The HTTP/2 error code that comes nearest, as the inverse of ``init(http2ErrorCode:)``.
  package var http2ErrorCode: UInt32 {
    switch self {
    case .unavailable: 0x7
    case .canceled: 0x8
    case .resourceExhausted: 0xb
    case .permissionDenied: 0xc
    default: 0x2
    }
  }
}
