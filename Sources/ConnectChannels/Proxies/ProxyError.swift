/// Why a proxy cannot be used. Messages have no passwords.
public struct ProxyError: Swift.Error, Hashable, Sendable {
  /// Why a proxy cannot be used, for programs.
  public enum Reason: Hashable, Sendable {
    /// The URL of the proxy, or the server's name, cannot be used.
    case invalidURL
    /// The proxy wants other credentials, or any.
    case authentication
    /// The proxy has answered that it does not connect to the server.
    case refused
    /// The proxy has answered that it could not reach the server.
    case serverUnreachable
    /// The answer is not of the protocol.
    case malformedAnswer
    /// The proxy has closed the connection before it answered.
    case closed
  }

  /// Why the proxy cannot be used, for programs.
  public var reason: Reason
  /// What happened, and what to do about it.
  public var message: String
  /// The status of the HTTP response, or the reply code of SOCKS 5 (RFC 1928, section 6); nil if the proxy sent none.
  public var status: Int?

  /// An error of a proxy.
  public init(_ reason: Reason, message: String, status: Int? = nil) {
    self.reason = reason
    self.message = message
    self.status = status
  }

  /// Whether a repetition would end in the same way: the settings or the rules are wrong, or it is no such proxy.
  package var isFinal: Bool {
    switch self.reason {
    case .invalidURL, .authentication, .malformedAnswer: true
    case .refused: self.status.map { Self.finalStatuses.contains($0) || (300..<400).contains($0) } ?? false
    case .serverUnreachable, .closed: false
    }
  }

  /// Of HTTP: forbidden, and CONNECT is not known. Of SOCKS 5 (RFC 1928, section 6): not allowed, CONNECT or the type of
  /// address is not supported.
  private static let finalStatuses: Set<Int> = [403, 405, 501, 2, 7, 8]

  static func invalidURL(_ problem: String) -> ProxyError {
    ProxyError(.invalidURL, message: "the proxy cannot be used: \(problem)")
  }
}

extension ProxyError: CustomStringConvertible {
  public var description: String { self.message }
}
