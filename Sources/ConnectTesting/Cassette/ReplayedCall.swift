internal import Connect
internal import NIOCore

/// A call that a cassette answers in place of a server.
///
/// Confined to the executor.
final class ReplayedCall: HTTPStream {
  /// Makes the call with a server, where the cassette has no answer.
  typealias Fallback = (any HTTPStreamHandler) -> any HTTPStream

  private let cassette: Cassette
  private let executor: any CallExecutor
  private let isTimed: Bool
  /// Nil once the call gets no more events.
  private var handler: (any HTTPStreamHandler)?
  private var session: ReplaySession
  private var fallback: Fallback?
  /// The call with the server.
  private var live: (any HTTPStream)?
  /// What was written, for the fallback.
  private var written: [ByteBuffer] = []
  private var trailers: Headers?

  private var hasStarted = false
  private var owesWritable = false
  private var isPumpScheduled = false
  private var timer: (any CallTimer)?
  /// Whether the next part's time has come.
  private var isDue = false
  private var body = ReplayedBody()

  /// - Parameters:
  ///   - isTimed: Whether parts come at their recorded times, else at once.
  ///   - fallback: Nil if calls that are not in the cassette fail.
  init(
    _ request: HTTPStreamRequest,
    _ cassette: Cassette,
    on executor: any CallExecutor,
    isTimed: Bool,
    handler: any HTTPStreamHandler,
    fallback: Fallback?
  ) {
    self.cassette = cassette
    self.executor = executor
    self.isTimed = isTimed
    self.handler = handler
    self.fallback = fallback
    self.session = ReplaySession(cassette, RequestReader(cassette.rules, request))
    if case .complete(let body) = request.body {
      self.session.receive(body)
      self.session.finish()
    }
    self.schedulePump()
  }

  // MARK: HTTPStream

  func write(_ bytes: ByteBuffer) {
    if let live = self.live { return live.write(bytes) }
    guard self.handler != nil, self.trailers == nil else { return }
    self.owesWritable = true
    if self.fallback != nil { self.written.append(bytes) }
    self.session.receive(bytes)
    self.schedulePump()
  }

  func finish(trailers: Headers) {
    if let live = self.live { return live.finish(trailers: trailers) }
    guard self.handler != nil, self.trailers == nil else { return }
    self.trailers = trailers
    self.session.finish()
    self.schedulePump()
  }

  func consume(_ count: Int) {
    if let live = self.live { return live.consume(count) }
    self.body.unconsumedBytes -= count
    self.schedulePump()
  }

  func cancel() {
    self.giveUp { $0.cancel() }
  }

  func expire() {
    self.giveUp { $0.expire() }
  }

  private func giveUp(_ end: (any HTTPStream) -> Void) {
    guard self.close() != nil else { return }
    if let live = self.live.take() { end(live) } else { self.session.cancel() }
  }

  // MARK: Serving

  /// Schedules ``pump()``: the handler must not be called from within the call's own functions.
  private func schedulePump() {
    guard self.handler != nil, !self.isPumpScheduled else { return }
    self.isPumpScheduled = true
    let here = Confined(self, to: self.executor)
    self.executor.execute {
      here.value.isPumpScheduled = false
      here.value.pump()
    }
  }

  private func pump() {
    guard self.live == nil else { return }
    if self.owesWritable {
      self.owesWritable = false
      self.handler?.streamDidBecomeWritable()
    }
    while let handler = self.handler, self.deliverBody(to: handler), self.handler != nil, self.timer == nil {
      switch self.session.next() {
      case .wait, .over:
        self.isDue = false
        return
      case .miss(let error): return self.miss(error, handler)
      case .serve(let delay):
        self.start()
        if self.isTimed, !self.isDue, delay > .zero { return self.wait(delay) }
        self.isDue = false
        guard self.handler != nil, let part = self.session.take() else { continue }
        self.serve(part)
      }
    }
  }

  private func wait(_ delay: Duration) {
    let here = Confined(self, to: self.executor)
    self.timer = self.executor.schedule(after: delay) {
      here.value.timer = nil
      here.value.isDue = true
      here.value.pump()
    }
  }

  /// Reports the connection, once the recorded call is known.
  private func start() {
    guard !self.hasStarted else { return }
    self.hasStarted = true
    // From here on the cassette has answered.
    self.fallback = nil
    self.written = []
    if let version = self.session.version {
      self.handler?.streamDidStart(
        on: HTTPConnectionInfo(version: version, isReused: false, remoteAddress: "cassette")
      )
    }
  }

  private func serve(_ part: ExchangeScript.ServedPart) {
    switch part {
    case .head(let head): self.handler?.streamDidReceive(head)
    case .body(let bytes): self.body.bytes = bytes
    case .end(let trailers): self.close()?.streamDidEnd(trailers: trailers)
    case .fail(let failure): self.close()?.streamDidFail(failure)
    }
  }

  /// Gives the call as much of the body as it has room for.
  ///
  /// - Returns: Whether it has all.
  private func deliverBody(to handler: any HTTPStreamHandler) -> Bool {
    while self.body.bytes.readableBytes > 0 {
      guard let piece = self.body.next() else { return false }
      handler.streamDidReceive(piece)
      if self.handler == nil { return false }
    }
    return true
  }

  // MARK: End

  private func close() -> (any HTTPStreamHandler)? {
    self.timer?.cancel()
    self.timer = nil
    self.body.bytes = ByteBuffer()
    return self.handler.take()
  }

  private func miss(_ error: ConnectError, _ handler: any HTTPStreamHandler) {
    guard let fallback = self.fallback.take() else {
      self.cassette.addMiss(error.message ?? "")
      self.close()?.streamDidFail(HTTPStreamFailure(error: error))
      return
    }
    let live = fallback(LiveHandler(handler, self))
    self.live = live
    for bytes in self.written { live.write(bytes) }
    self.written = []
    if let trailers = self.trailers { live.finish(trailers: trailers) }
  }

  /// Passes on what the server answers, until the call is over.
  private final class LiveHandler: HTTPStreamHandler {
    private let handler: any HTTPStreamHandler
    private let call: ReplayedCall

    init(_ handler: any HTTPStreamHandler, _ call: ReplayedCall) {
      self.handler = handler
      self.call = call
    }

    func streamDidStart(on connection: HTTPConnectionInfo) { self.handler.streamDidStart(on: connection) }
    func streamDidBecomeWritable() { self.handler.streamDidBecomeWritable() }
    func streamDidReceive(_ head: HTTPResponseHead) { self.handler.streamDidReceive(head) }
    func streamDidReceive(_ bytes: ByteBuffer) { self.handler.streamDidReceive(bytes) }

    func streamDidEnd(trailers: Headers) {
      self.end()
      self.handler.streamDidEnd(trailers: trailers)
    }

    func streamDidFail(_ failure: HTTPStreamFailure) {
      self.end()
      self.handler.streamDidFail(failure)
    }

    private func end() {
      self.call.live = nil
      _ = self.call.close()
    }
  }
}

/// The bytes of a response that do not fit into the window yet.
private struct ReplayedBody {
  /// How many unconsumed bytes of the response the call may have, as in a window of HTTP/2.
  private static let window = 65535

  var bytes = ByteBuffer()
  var unconsumedBytes = 0

  mutating func next() -> ByteBuffer? {
    let room = Self.window - self.unconsumedBytes
    guard room > 0, let piece = self.bytes.readSlice(length: min(room, self.bytes.readableBytes)) else {
      return nil
    }
    self.unconsumedBytes += piece.readableBytes
    return piece
  }
}
