public import Connect

extension CallContext {
  /// Reads what the headers of a request say about its context, for a service that handles the request. These are the time
  /// limit of Connect and gRPC as `CallContext.deadline`, the request's id, and its baggage. Values that the headers do not
  /// have stay as they are; a deadline can only become earlier.
  ///
  /// ```swift
  /// try await CallContext.withValues { $0.read(requestHeaders: headers) } operation: { try await answer(request) }
  /// ```
  ///
  /// - Parameters:
  ///   - headers: The headers of the received request.
  ///   - requestIDHeader: The header with the request's id.
  ///   - clock: What the deadline is measured with.
  public mutating func read(
    requestHeaders headers: Headers,
    requestIDHeader: String = "x-request-id",
    clock: any Clock<Duration> = ContinuousClock()
  ) {
    if let timeout = Self.timeout(in: headers), self.deadline.map({ timeout < $0.remaining }) ?? true {
      self.deadline = CallDeadline(in: timeout, clock: clock)
    }
    if let id = headers.first(requestIDHeader) { self.requestID = id }
    let baggage = Baggage(headers)
    if !baggage.isEmpty { self.baggage = baggage }
  }

  /// <https://connectrpc.com/docs/protocol#unary-request> and
  /// <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#requests>.
  private static func timeout(in headers: Headers) -> Duration? {
    if let text = headers.first("connect-timeout-ms") {
      return self.number(text[...], maximumDigits: 10).map { .milliseconds($0) }
    }
    guard let text = headers.first("grpc-timeout"), let unit = text.utf8.last,
      let number = self.number(text.dropLast(), maximumDigits: 8)
    else { return nil }
    switch unit {
    case UInt8(ascii: "H"): return .seconds(number * 3600)
    case UInt8(ascii: "M"): return .seconds(number * 60)
    case UInt8(ascii: "S"): return .seconds(number)
    case UInt8(ascii: "m"): return .milliseconds(number)
    case UInt8(ascii: "u"): return .microseconds(number)
    case UInt8(ascii: "n"): return .nanoseconds(number)
    default: return nil
    }
  }

  private static func number(_ text: Substring, maximumDigits: Int) -> Int64? {
    let digits = text.utf8
    guard (1...maximumDigits).contains(digits.count),
      digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
    else { return nil }
    return Int64(text)
  }
}
