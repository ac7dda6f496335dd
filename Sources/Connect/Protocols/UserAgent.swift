/// The `user-agent` of requests whose caller sets none.
package enum UserAgent {
  /// The version of this library.
  package static let version = "0.1.0"
  static let standard = "connect-swift-linux/\(version)"
  /// As gRPC wants it: `grpc-`, the language, a variant.
  /// <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#user-agents>
  static let grpc = "grpc-swift-connect-linux/\(version)"

  /// Whether `headers` has one, in any of the protocols.
  static func isSet(in headers: Headers) -> Bool {
    headers.first(lowercased: "user-agent") != nil || headers.first(lowercased: "x-user-agent") != nil
  }

  /// Adds `value` if the user's headers have none.
  static func add(_ value: String = standard, to headers: inout Headers, unlessIn given: Headers) {
    guard !given.contains("user-agent") else { return }
    headers.add(name: "user-agent", value: value)
  }
}
