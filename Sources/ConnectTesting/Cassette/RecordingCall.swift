internal import Connect
internal import NIOCore

/// A call between its caller and the transport that makes it, which writes down what passes.
///
/// Confined to the executor.
final class RecordingCall: HTTPStream, HTTPStreamHandler {
  private let cassette: Cassette
  private let isUsed: Bool
  private let executor: any CallExecutor
  /// The call's place in the cassette.
  private let index: Int
  private let start: Duration
  private var raw: RawExchange
  /// Nil once the call is over.
  private var handler: (any HTTPStreamHandler)?
  private var stream: (any HTTPStream)?

  /// - Parameters:
  ///   - isUsed: Whether the recorded call counts as asked.
  ///   - start: Starts the call with the transport.
  init(
    _ request: HTTPStreamRequest,
    _ cassette: Cassette,
    isUsed: Bool,
    on executor: any CallExecutor,
    handler: any HTTPStreamHandler,
    start: (any HTTPStreamHandler) -> any HTTPStream
  ) {
    self.cassette = cassette
    self.isUsed = isUsed
    self.executor = executor
    self.index = cassette.beginRecording()
    self.start = executor.now
    self.raw = RawExchange(request, limit: cassette.rules.configuration.maximumBodySize)
    self.handler = handler
    if !cassette.reserve(self.raw.size) { self.raw.drop() }
    self.stream = start(self)
  }

  private func add(_ event: RawExchange.Event) {
    guard self.handler != nil else { return }
    let size = self.raw.size
    self.raw.add(
      event,
      at: self.executor.now - self.start,
      limit: self.cassette.rules.configuration.maximumBodySize
    )
    if self.raw.size > size, !self.cassette.reserve(self.raw.size - size) { self.raw.drop() }
  }

  /// Writes the call down, before its caller hears of the end.
  private func end(_ event: RawExchange.Event) -> (any HTTPStreamHandler)? {
    self.add(event)
    guard let handler = self.handler.take() else { return nil }
    self.stream = nil
    self.cassette.endRecording(self.index, self.raw, isUsed: self.isUsed)
    return handler
  }

  // MARK: HTTPStream

  func write(_ bytes: ByteBuffer) {
    self.add(.sent(bytes))
    self.stream?.write(bytes)
  }

  func finish(trailers: Headers) {
    self.add(.finished(trailers))
    self.stream?.finish(trailers: trailers)
  }

  func consume(_ count: Int) { self.stream?.consume(count) }

  func cancel() {
    let stream = self.stream
    _ = self.end(.cancelled)
    stream?.cancel()
  }

  func expire() {
    let stream = self.stream
    _ = self.end(.cancelled)
    stream?.expire()
  }

  // MARK: HTTPStreamHandler

  func streamDidStart(on connection: HTTPConnectionInfo) {
    self.raw.version = connection.version
    self.handler?.streamDidStart(on: connection)
  }

  func streamDidBecomeWritable() { self.handler?.streamDidBecomeWritable() }

  func streamDidReceive(_ head: HTTPResponseHead) {
    self.add(.head(head))
    self.handler?.streamDidReceive(head)
  }

  func streamDidReceive(_ bytes: ByteBuffer) {
    self.add(.received(bytes))
    self.handler?.streamDidReceive(bytes)
  }

  func streamDidEnd(trailers: Headers) { self.end(.ended(trailers))?.streamDidEnd(trailers: trailers) }

  func streamDidFail(_ failure: HTTPStreamFailure) { self.end(.failed(failure))?.streamDidFail(failure) }
}
