/// Counts the streams of a server, and reads what their responses report. Used on the executor of the streams alone.
///
/// A stream that has begun ends once: with a whole response, or without one.
package protocol StreamTally: AnyObject {
  /// A stream begins.
  func streamBegins()

  /// The response is complete.
  func streamDidEnd(_ head: HTTPResponseHead?, trailers: Headers)

  /// There will be no whole response.
  ///
  /// - Parameter isFailure: Whether that may be the server's fault; false if the caller has given up.
  func streamDidEnd(isFailure: Bool)
}

/// A handler that tells a tally itself how its streams end, which takes fewer steps than somebody between it and its stream.
package class TalliedHandler {
  /// Nil if nobody counts the stream, or it has ended.
  private var tally: (any StreamTally)?

  init() {}

  /// The handler's next stream begins.
  package final func begin(_ tally: any StreamTally) {
    self.tally = tally
    tally.streamBegins()
  }

  /// The stream has a whole response.
  ///
  /// - Parameter head: Read only if somebody counts the stream.
  final func endTally(_ head: @autoclosure () -> HTTPResponseHead?, trailers: Headers) {
    guard let tally = self.tally else { return }
    self.tally = nil
    tally.streamDidEnd(head(), trailers: trailers)
  }

  /// The stream will have no whole response, or nobody wants it.
  final func endTally(isFailure: Bool) {
    guard let tally = self.tally else { return }
    self.tally = nil
    tally.streamDidEnd(isFailure: isFailure)
  }
}
