/// How many streams a server takes on one connection before it renews the connection, such as nginx's `keepalive_requests`.
/// What comes later on the same connection would be refused, and sent again.
///
/// Learned from connections that ended after the same number of streams, two in a row.
struct StreamQuota {
  /// Nil if it is not known that there is one.
  private(set) var value: Int?
  private var last: Int?

  /// Fewer streams are more often those of a connection that was closed since it was idle.
  private static let least = 4

  /// The server has renewed a connection.
  ///
  /// - Parameter count: After how many streams; nil if it did not say.
  mutating func connectionWasRenewed(after count: Int?) {
    self.value = count == self.last && count ?? 0 >= Self.least ? count : nil
    self.last = count
  }

  /// A connection with so many streams was not renewed.
  mutating func wasWrong() {
    self.value = nil
    self.last = nil
  }
}
