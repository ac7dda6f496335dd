internal import Connect
internal import NIOCore

/// One request and its response on an ``HTTP1Connection``. Confined to the connection's event loop.
final class HTTP1Stream: HTTPStream {
  enum RequestState {
    case open
    case finished
  }

  /// Both nil once the handler has been told of the end, or wants to hear nothing more.
  private(set) var handler: (any HTTPStreamHandler)?
  private var connection: HTTP1Connection?

  var request: RequestState
  var response = HTTP1Response()
  /// Whether a byte of the request may have gone to the socket.
  var isFlushed = false
  var hasStarted = false
  /// Whether the handler waits to hear that it may write more.
  var awaitsWritability = false
  /// Bytes of the body that the call was given and has not consumed.
  var unconsumed = 0

  init(_ request: HTTPStreamRequest, handler: any HTTPStreamHandler, connection: HTTP1Connection) {
    self.handler = handler
    self.connection = connection
    if case .complete = request.body { self.request = .finished } else { self.request = .open }
  }

  /// The handler, which from now on hears nothing more; nil if that was so already.
  func takeHandler() -> (any HTTPStreamHandler)? {
    self.connection = nil
    return self.handler.take()
  }

  // MARK: HTTPStream

  func write(_ bytes: ByteBuffer) {
    guard case .open = self.request else { return }
    self.connection?.write(bytes, for: self)
  }

  func finish(trailers: Headers) {
    guard case .open = self.request else { return }
    self.connection?.finish(trailers: trailers, for: self)
  }

  func consume(_ count: Int) {
    guard let connection = self.connection else { return }
    self.unconsumed = max(0, self.unconsumed - max(count, 0))
    connection.didConsume(self)
  }

  func cancel() {
    guard let connection = self.connection else { return }
    _ = self.takeHandler()
    connection.cancelled(self)
  }
}
