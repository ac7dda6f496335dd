internal import Connect

extension FaultInjection {
  /// Whether any call can have a fault.
  var isActive: Bool { self.delay != nil || self.abort != nil }

  /// The fault of a call; nil for none.
  ///
  /// - Parameter random: The call's random numbers.
  func decide(
    _ headers: Headers,
    _ random: inout SeededRandom
  ) -> (delay: Duration?, error: ConnectError?)? {
    var delay = self.delay?.time(of: headers)
    if delay != nil, let share = self.delay?.share(of: headers), !random.hits(share) { delay = nil }
    var code = self.abort?.code(of: headers)
    if code != nil, let share = self.abort?.share(of: headers), !random.hits(share) { code = nil }
    if delay == nil, code == nil { return nil }
    return (delay, code.map { ConnectError(code: $0, message: Self.message).beforeRoutes })
  }

  /// It begins as that of gRPC.
  private static var message: String {
    "Fault injected: a route of the client has this part of the calls fail on purpose, to try how programs take it"
  }
}

extension FaultInjection.Delay {
  fileprivate func time(of headers: Headers) -> Duration? {
    let time: Duration? =
      switch self.time {
      case .fixed(let time): time
      case .header: headers.number("x-envoy-fault-delay-request").map { .milliseconds($0) }
      }
    return time.flatMap { $0 > .zero ? $0 : nil }
  }

  fileprivate func share(of headers: Headers) -> UInt32 {
    guard case .header = self.time else { return self.perMillion }
    let percentage = headers.number("x-envoy-fault-delay-request-percentage")
    return self.perMillion.lowered(to: percentage, unit: self.headerUnit)
  }
}

extension FaultInjection.Abort {
  fileprivate func code(of headers: Headers) -> Code? {
    let code: Code? =
      switch self.code {
      case .fixed(let code): code
      case .header: Self.code(in: headers)
      }
    return code == .ok ? nil : code
  }

  private static func code(in headers: Headers) -> Code? {
    if let value = headers.first("x-envoy-fault-abort-grpc-request") {
      return Int(value).map { Code(rawValue: $0) ?? .unknown }
    }
    // The mapping of gRPC (https://github.com/grpc/grpc/blob/master/doc/http-grpc-status-mapping.md).
    switch headers.number("x-envoy-fault-abort-request") {
    case nil, 200: return nil
    case 400: return .internalError
    case 401: return .unauthenticated
    case 403: return .permissionDenied
    case 404: return .unimplemented
    case 429, 502, 503, 504: return .unavailable
    default: return .unknown
    }
  }

  fileprivate func share(of headers: Headers) -> UInt32 {
    guard case .header = self.code else { return self.perMillion }
    let percentage =
      headers.number("x-envoy-fault-abort-request-percentage")
      ?? headers.number("x-envoy-fault-abort-percentage")
    return self.perMillion.lowered(to: percentage, unit: self.headerUnit)
  }
}

extension UInt32 {
  /// A share of a million calls, of which a header may ask for less.
  fileprivate func lowered(to percentage: Int64?, unit: UInt32) -> UInt32 {
    guard let percentage else { return self }
    let (asked, isTooMuch) = Swift.max(percentage, 0).multipliedReportingOverflow(by: Int64(unit))
    return isTooMuch ? self : Swift.min(self, UInt32(clamping: asked))
  }
}

extension Headers {
  fileprivate func number(_ name: String) -> Int64? { self.first(name).flatMap { Int64($0) } }
}

extension SeededRandom {
  /// True for this share of a million.
  fileprivate mutating func hits(_ perMillion: UInt32) -> Bool {
    if perMillion >= 1_000_000 { return true }
    return self.next().multipliedFullWidth(by: 1_000_000).high < UInt64(perMillion)
  }
}
