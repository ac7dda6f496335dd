internal import Connect

/// The request-id header of an interceptor further outside, in lower case. Its value differs in each call, so no response
/// depends on it. Nil for none, or for `x-request-id`, which needs no mark.
enum RequestIDHeader: CallContextKey {
  static let defaultValue: String? = nil
  static let wellKnown = "x-request-id"
}
