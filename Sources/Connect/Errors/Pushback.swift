/// What a server that fails an attempt says about the next one, in `grpc-retry-pushback-ms`.
///
/// <https://github.com/grpc/proposal/blob/master/A6-client-retries.md#pushback>
enum Pushback: Equatable {
  /// There is to be none.
  case never
  case after(Duration)

  /// Nil if it says nothing.
  init?(_ error: ConnectError) {
    guard let value = error.metadata.first("grpc-retry-pushback-ms") else { return nil }
    guard let milliseconds = Int64(value), milliseconds >= 0 else {
      self = .never
      return
    }
    self = .after(.milliseconds(milliseconds))
  }
}
