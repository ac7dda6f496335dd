internal import Connect

/// The header that an interceptor further outside has sent the request's id in, in lower case. It differs from call to call
/// by nature, so no response depends on it. Nil for none, or for `x-request-id`, which everybody knows.
enum RequestIDHeader: CallContextKey {
  static let defaultValue: String? = nil
  static let wellKnown = "x-request-id"
}
