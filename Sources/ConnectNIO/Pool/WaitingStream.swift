internal import Connect
internal import DequeModule
internal import NIOCore

/// A stream that has no connection yet. What the call writes is kept and handed on once there is one; from
/// then on everything goes straight to the connection's own stream.
///
/// What is kept is bounded by the call, which writes no more before it hears `streamDidBecomeWritable`.
/// Confined to the endpoint's event loop.
final class WaitingStream: HTTPStream {
  private enum State {
    case waiting(HTTPStreamRequest, any HTTPStreamHandler)
    case started(any HTTPStream)
    case done
  }

  private var state: State
  private let endpoint: NIOEndpoint
  private var ticket: NIOEndpoint.Pool.Ticket?
  private var written: Deque<ByteBuffer> = []
  private var trailers: Headers?

  init(_ request: HTTPStreamRequest, handler: any HTTPStreamHandler, endpoint: NIOEndpoint) {
    self.state = .waiting(request, handler)
    self.endpoint = endpoint
  }

  /// The place in the queue.
  func queued(as ticket: NIOEndpoint.Pool.Ticket) {
    self.ticket = ticket
  }

  /// Goes on with `connection`. False if the call was cancelled in the meantime.
  func start(on connection: any StreamConnection) -> Bool {
    guard case .waiting(let request, let handler) = self.state else { return false }
    let stream = connection.startStream(request, handler: handler)
    self.state = .started(stream)
    while let bytes = self.written.popFirst() { stream.write(bytes) }
    if let trailers = self.trailers.take() { stream.finish(trailers: trailers) }
    return true
  }

  /// Tells the call that there will be no connection.
  func fail(_ error: ConnectError, isUnprocessed: Bool = false) {
    guard case .waiting(_, let handler) = self.state else { return }
    self.finish()
    handler.streamDidFail(HTTPStreamFailure(error: error, isUnprocessed: isUnprocessed))
  }

  private func finish() {
    self.state = .done
    self.written = []
    self.trailers = nil
  }

  // MARK: HTTPStream

  func write(_ bytes: ByteBuffer) {
    switch self.state {
    case .waiting: self.written.append(bytes)
    case .started(let stream): stream.write(bytes)
    case .done: break
    }
  }

  func finish(trailers: Headers) {
    switch self.state {
    case .waiting: self.trailers = trailers
    case .started(let stream): stream.finish(trailers: trailers)
    case .done: break
    }
  }

  func consume(_ count: Int) {
    if case .started(let stream) = self.state { stream.consume(count) }
  }

  func cancel() {
    switch self.state {
    case .waiting:
      self.finish()
      if let ticket = self.ticket { self.endpoint.cancelWaiting(ticket) }
    case .started(let stream):
      self.state = .done
      stream.cancel()
    case .done:
      break
    }
  }
}
