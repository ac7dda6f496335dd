internal import Connect
internal import NIOCore

/// Shows one exchange to a ``WireTap``. It changes nothing.
///
/// List it last, and it sees what goes over the wire. List it first, and it sees what the call and the protocol make.
public final class WireTapInterceptor: WireInterceptor {
  private static let redacted = "<redacted>"

  private let tap: WireTap
  private var exchange: WireExchange
  private var hasShownFailure = false
  private let number: UInt64
  private let start: Duration
  private let redactedHeaders: Set<String>
  /// How many bytes of the bodies may still be shown.
  private var requestRoom: Int
  private var responseRoom: Int

  /// An interceptor for one exchange, as each factory makes it.
  public init(_ tap: WireTap, _ exchange: WireExchange) {
    self.tap = tap
    self.exchange = exchange
    // It would be kept as long as the response takes.
    self.exchange.request.body = .streamed
    self.number = tap.makeNumber()
    self.start = exchange.executor.now
    self.redactedHeaders = tap.options.redactedHeaders.union(exchange.context[SensitiveHeaders.self])
    self.requestRoom = max(tap.options.bodyBytes, 0)
    self.responseRoom = self.requestRoom
  }

  public func wireFunction() -> WireFunction {
    WireFunction(
      requestHeadFunction: { request, proceed in
        self.show(request)
        proceed(request)
      },
      requestChunkFunction: { bytes, proceed in
        self.showRequest(bytes)
        proceed(bytes)
      },
      requestEndFunction: { trailers, proceed in
        self.add(.requestEnd(trailers: self.redacting(trailers)))
        proceed(trailers)
      },
      connectionFunction: { connection in self.add(.connection(connection)) },
      responseHeadFunction: { head, proceed in
        self.add(.responseHead(HTTPResponseHead(status: head.status, headers: self.redacting(head.headers))))
        proceed(head)
      },
      responseChunkFunction: { bytes, proceed in
        let (shown, omitted) = Self.beginning(of: bytes, room: &self.responseRoom)
        self.add(.responseChunk(shown, omitted: omitted))
        proceed(bytes)
      },
      responseEndFunction: { trailers, proceed in
        self.add(.responseEnd(trailers: self.redacting(trailers)))
        proceed(trailers)
      },
      failureFunction: { failure, proceed in
        self.hasShownFailure = true
        self.add(.failure(code: failure.error.code, message: failure.error.message ?? ""))
        proceed(failure)
      },
      endFunction: { outcome in
        switch outcome {
        case .completed: break
        case .failed(let failure):
          // An interceptor further out has failed the exchange.
          guard !self.hasShownFailure else { return }
          self.add(.failure(code: failure.error.code, message: failure.error.message ?? ""))
        case .cancelled: self.add(.abandoned(hasExpired: false))
        case .expired: self.add(.abandoned(hasExpired: true))
        }
      }
    )
  }

  private func show(_ request: HTTPStreamRequest) {
    self.add(
      .requestHead(
        method: request.method.rawValue,
        url: "\(self.exchange.origin)\(request.target)",
        headers: self.redacting(request.headers)
      )
    )
    guard let body = request.completeBody else { return }
    if body.readableBytes > 0 { self.showRequest(body) }
    self.add(.requestEnd(trailers: Headers()))
  }

  private func showRequest(_ bytes: ByteBuffer) {
    let (shown, omitted) = Self.beginning(of: bytes, room: &self.requestRoom)
    self.add(.requestChunk(shown, omitted: omitted))
  }

  private func add(_ event: WireRecord.Event) {
    let time = self.exchange.executor.now - self.start
    self.tap.add(WireRecord(exchange: self.number, time: time, event: event))
  }

  private func redacting(_ headers: Headers) -> Headers {
    guard headers.contains(where: { self.isSecret($0.name) }) else { return headers }
    return Headers(
      headers.map { field in
        self.isSecret(field.name)
          ? Headers.Field(name: field.name, value: Self.redacted) : field
      }
    )
  }

  /// The Connect protocol sends trailers of unary calls as headers with a prefix.
  private func isSecret(_ name: String) -> Bool {
    self.redactedHeaders.contains(name)
      || name.hasPrefix("trailer-") && self.redactedHeaders.contains(String(name.dropFirst("trailer-".count)))
  }

  /// A copy, since a slice keeps all of the buffer in memory.
  private static func beginning(of bytes: ByteBuffer, room: inout Int) -> (ByteBuffer, omitted: Int) {
    let count = min(bytes.readableBytes, room)
    room -= count
    return (ByteBuffer(bytes: bytes.readableBytesView.prefix(count)), bytes.readableBytes - count)
  }
}
