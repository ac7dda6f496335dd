/// What the response of a failed attempt says about the next attempt, in `grpc-retry-pushback-ms`.
///
/// <https://github.com/grpc/proposal/blob/master/A6-client-retries.md#pushback>
enum Pushback: Equatable {
  /// There must be no other attempt.
  case never
  case after(Duration)

  /// Nil if `error` has no such field.
  init?(_ error: ConnectError) {
    guard let value = error.metadata.first("grpc-retry-pushback-ms") else { return nil }
    guard let milliseconds = Int64(value), milliseconds >= 0 else {
      self = .never
      return
    }
    self = .after(.milliseconds(milliseconds))
  }
}
