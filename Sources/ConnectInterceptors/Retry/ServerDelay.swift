internal import Connect

/// What a server says about another attempt; see ``RetryPolicy`` for the order in which headers and details count.
enum ServerDelay: Equatable {
  /// Not to try again.
  case never
  case exactly(Duration)
  case atLeast(Duration)

  static let pushbackHeader = "grpc-retry-pushback-ms"

  /// Nil if it says nothing.
  init?(_ error: ConnectError) {
    if let pushback = error.metadata.first(Self.pushbackHeader) {
      guard let milliseconds = Int64(pushback), milliseconds >= 0 else {
        self = .never
        return
      }
      self = .exactly(.milliseconds(milliseconds))
    } else if let delay = RetryInfo.delay(in: error.details) {
      self = .atLeast(max(.zero, delay))
    } else if let delay = Self.retryAfter(error.metadata) {
      self = .atLeast(max(.zero, delay))
    } else {
      return nil
    }
  }

  /// RFC 9110, section 10.2.3. A value that is neither a number nor a date is ignored.
  private static func retryAfter(_ metadata: Headers) -> Duration? {
    guard let text = metadata.first("retry-after") else { return nil }
    if !text.isEmpty, text.utf8.allSatisfy({ $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }) {
      return .seconds(Int64(text) ?? .max)
    }
    guard let time = RetryAfterDate.seconds(text) else { return nil }
    // By the server's clock, if it tells the time: the local clock may be wrong.
    let date = metadata.first("date").flatMap(RetryAfterDate.seconds)
    return .seconds(time - (date ?? WallClock.system.now.components.seconds))
  }
}

extension ConnectError {
  /// The same error, with the header by which a server forbids another attempt. Guards set it: a retry would only meet the
  /// same guard again.
  func forbiddingRetry() -> ConnectError {
    var error = self
    error.metadata[ServerDelay.pushbackHeader] = ["-1"]
    return error
  }
}
