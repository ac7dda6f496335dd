internal import Connect

/// The headers of a request that say who the user is, as far as that is known by their names.
struct UserHeaders {
  /// The headers that a ``CachePartition`` replaces.
  static let partitioned: Set<String> = ["authorization", "cookie"]

  private static let known = partitioned.union(["proxy-authorization"])

  /// The names that interceptors have marked as sensitive.
  private let sensitive: Set<String>

  init<Message>(of request: HTTPRequest<Message>) {
    self.sensitive = request.context[SensitiveHeaders.self]
  }

  /// - Parameter name: In lower case.
  func contains(_ name: String) -> Bool {
    Self.known.contains(name) || self.sensitive.contains(name)
  }
}
