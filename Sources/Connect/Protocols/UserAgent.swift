/// The `user-agent` of requests whose caller sets none.
enum UserAgent {
  static let standard = "connect-swift-linux/0.1.0"

  /// Adds the library's own value if `headers` has none.
  static func addIfMissing(to headers: inout Headers) {
    guard !headers.contains("user-agent") else { return }
    headers.add(name: "user-agent", value: self.standard)
  }
}
