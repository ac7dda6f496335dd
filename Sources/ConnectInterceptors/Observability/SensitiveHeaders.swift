public import Connect

/// The names of the headers of a request that hold a secret, in lower case, set in its `HTTPRequest.context` by
/// the interceptor that adds them. They are logged as `<redacted>`, whatever
/// ``CallLog/Options/redactedHeaders-swift.property`` says.
///
/// ```swift
/// CallFunction(requestFunction: { request in
///   request.headers["x-service-token"] = [token]
///   request.context[SensitiveHeaders.self].insert("x-service-token")
/// })
/// ```
public enum SensitiveHeaders: CallContextKey {
  /// No further headers.
  public static let defaultValue: Set<String> = []
}

extension HTTPRequest {
  /// The request with a note that these headers hold secrets, too.
  func marking(_ names: Set<String>) -> HTTPRequest {
    var request = self
    let others = request.context[SensitiveHeaders.self]
    // A union would compute the names' hashes for each call.
    request.context[SensitiveHeaders.self] = others.isEmpty ? names : others.union(names)
    return request
  }
}
