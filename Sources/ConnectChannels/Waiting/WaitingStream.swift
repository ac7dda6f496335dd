internal import Connect
internal import DequeModule
internal import NIOCore

/// Has a queue of calls that wait for a connection.
protocol QueueOwner: AnyObject {
  /// The call does not wait any more.
  func leave(_ handle: WaitingStream.Handle)
}

/// A stream that has no connection yet. What the call writes is kept and handed on once there is one; from
/// then on everything goes straight to the connection's own stream.
///
/// What is kept is bounded by the call, which writes no more before it hears `streamDidBecomeWritable`.
/// Confined to the channel's executor.
final class WaitingStream: HTTPStream {
  typealias Handle = WaitingQueue<WaitingStream>.Handle

  private enum State {
    case waiting(any HTTPStreamHandler)
    case started(any HTTPStream)
    case done
  }

  /// A route may lead it to a cluster while it waits.
  var request: HTTPStreamRequest
  /// A random number that belongs to the call, for pickers.
  let seed: UInt64
  /// When it began to wait.
  let start: Duration
  /// Whether it has waited for a connection that was lost.
  var wasTakenBack = false
  /// What the pick that chose the endpoint adds to the call.
  var additions: PickAdditions?
  /// Counts the call while it waits for a connection to its endpoint; nil if nobody counts.
  var queuedCall: QueuedCall?
  private var state: State
  private var queue: (owner: any QueueOwner, handle: Handle)?
  /// Keeps the channel for as long as the call has the stream.
  private let channel: AnyObject
  private var written: Deque<ByteBuffer> = []
  private var trailers: Headers?

  init(
    _ request: HTTPStreamRequest,
    handler: any HTTPStreamHandler,
    seed: UInt64,
    since start: Duration,
    channel: AnyObject
  ) {
    self.request = request
    self.seed = seed
    self.start = start
    self.state = .waiting(handler)
    self.channel = channel
  }

  /// The call waits in a queue.
  func queued(by owner: any QueueOwner, as handle: Handle) {
    self.queue = (owner, handle)
  }

  /// Goes on with the stream that `start` makes. False if the call was cancelled in the meantime.
  func start(_ start: (HTTPStreamRequest, any HTTPStreamHandler) -> any HTTPStream) -> Bool {
    guard case .waiting(let handler) = self.state else { return false }
    let stream = start(self.request, handler)
    // An observer may have cancelled the call just now.
    guard case .waiting = self.state else {
      stream.cancel()
      return true
    }
    self.state = .started(stream)
    self.queue = nil
    self.queuedCall = nil
    while let bytes = self.written.popFirst() { stream.write(bytes) }
    if let trailers = self.trailers.take() { stream.finish(trailers: trailers) }
    return true
  }

  /// Tells the call that there will be no connection.
  func fail(_ error: ConnectError, isUnprocessed: Bool = false) {
    guard case .waiting(let handler) = self.state else { return }
    self.finish()
    handler.streamDidFail(HTTPStreamFailure(error: error, isUnprocessed: isUnprocessed))
  }

  private func finish() {
    self.state = .done
    self.queue = nil
    self.written = []
    self.trailers = nil
    self.additions = nil
    self.queuedCall = nil
    // Whoever keeps the stream does not keep the cluster.
    self.request.destination = nil
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

  func cancel() { self.giveUp { $0.cancel() } }
  func expire() { self.giveUp { $0.expire() } }

  private func giveUp(_ end: (any HTTPStream) -> Void) {
    switch self.state {
    case .waiting:
      let queue = self.queue
      self.finish()
      if let queue { queue.owner.leave(queue.handle) }
    case .started(let stream):
      self.state = .done
      end(stream)
    case .done:
      break
    }
  }
}
