public import Connect

/// Sends what a call's context says of the request that it belongs to: its id, and its baggage.
///
/// ```swift
/// let config = ProtocolClientConfig(
///   host: "https://api.example.com",
///   interceptors: [{ _ in ContextInterceptor() }]
/// )
/// ```
///
/// A call without a request id gets one, the same for all its attempts, and interceptors inside see it in
/// `context.requestID`. Headers that the caller has set are left alone; an id in them is the call's.
public final class ContextInterceptor: Interceptor {
  public struct Options: Sendable {
    /// The header with the request's id; nil for none.
    public var requestIDHeader: String?
    /// Makes the id of a call that has none; nil for leaving it without.
    public var makeRequestID: (@Sendable () -> String)?
    /// Whether the `baggage` header is sent.
    public var sendsBaggage: Bool

    public init(
      requestIDHeader: String? = "x-request-id",
      makeRequestID: (@Sendable () -> String)? = { Options.randomID() },
      sendsBaggage: Bool = true
    ) {
      self.requestIDHeader = requestIDHeader
      self.makeRequestID = makeRequestID
      self.sendsBaggage = sendsBaggage
    }

    /// `x-request-id`, random where there is none, and baggage.
    public static var defaults: Options { Options() }

    /// 128 random bits as 32 hexadecimal digits.
    public static func randomID() -> String {
      let digits = StaticString("0123456789abcdef")
      return String(unsafeUninitializedCapacity: 32) { buffer in
        var bits = UInt64.zero
        for index in 0..<32 {
          if index % 16 == 0 { bits = .random(in: .min ... .max) }
          buffer[index] = digits.utf8Start[Int(bits & 15)]
          bits >>= 4
        }
        return 32
      }
    }
  }

  private let options: Options
  private var madeRequestID: String?

  public init(options: Options = .defaults) {
    self.options = options
  }

  public func unaryMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> UnaryMessageFunction<Input, Output> {
    UnaryMessageFunction(
      requestFunction: { request, proceed in proceed(.success(self.complete(request))) }
    )
  }

  public func streamMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> StreamMessageFunction<Input, Output> {
    StreamMessageFunction(
      requestFunction: { request, proceed in proceed(.success(self.complete(request))) }
    )
  }

  private func complete<Message>(_ request: HTTPRequest<Message>) -> HTTPRequest<Message> {
    var request = request
    if let header = self.options.requestIDHeader {
      if let id = request.headers.first(header) {
        request.context.requestID = id
      } else if let id = request.context.requestID {
        request.headers[header] = [id]
      } else if let id = self.madeRequestID ?? self.options.makeRequestID?() {
        self.madeRequestID = id
        request.headers[header] = [id]
        request.context.requestID = id
      }
    }
    if self.options.sendsBaggage, !request.headers.contains("baggage"),
      let baggage = request.context.baggage.headerValue
    {
      request.headers["baggage"] = [baggage]
    }
    return request
  }
}
