internal import Connect
internal import NIOCore

/// A stream of an ``InMemoryTransport``, as the call sees it. An ``InMemoryExchange`` is the server's side.
///
/// Confined to the executor, which makes it `Sendable`: the call's functions are called there, the server's hop.
final class InMemoryStream: HTTPStream, @unchecked Sendable {
  let head: ServerRequestHead
  /// The connection counts its streams from 1 on.
  let number: Int
  /// The stream's index among the connection's streams, which the connection sets.
  var place = 0
  let connection: InMemoryConnection
  let executor: any CallExecutor
  /// Nil once the call gets no more events.
  private var handler: (any HTTPStreamHandler)?
  private var hasBegun = false
  private var task: Task<Void, Never>?

  var request: InMemoryRequestBody
  var response: InMemoryResponse
  var waits = InMemoryWaits()
  private var isPumpScheduled = false
  /// When the stream has ended; nil as long as it has not.
  private(set) var closeTime: Duration?

  init(
    _ request: HTTPStreamRequest,
    handler: any HTTPStreamHandler,
    on connection: InMemoryConnection,
    number: Int
  ) {
    let target = request.target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    var head = ServerRequestHead(
      method: request.method.rawValue,
      path: target.first.map(String.init) ?? "",
      query: target.count > 1 ? String(target[1]) : "",
      headers: request.headers
    )
    head.context = request.context
    head.authority = request.authority
    head.serverAddress = connection.route.serverAddress
    self.head = head
    self.handler = handler
    self.connection = connection
    self.number = number
    self.executor = connection.server.executor
    self.request = InMemoryRequestBody(request.body, at: self.executor.now)
    self.response = InMemoryResponse(window: connection.server.window)
  }

  var isOpen: Bool { self.handler != nil }

  /// Reports the connection to the call, and starts the task that answers. On the executor, after the stream's start.
  func begin(_ start: () -> Task<Void, Never>) {
    guard let handler = self.handler else { return }
    self.hasBegun = true
    handler.streamDidStart(on: self.connection.nextInfo())
    // The call may have cancelled the stream meanwhile.
    if self.handler != nil { self.task = start() }
  }

  /// Ends the stream with a failure. On the executor, outside of the call's functions.
  func fail(_ failure: HTTPStreamFailure) {
    guard let handler = self.handler else { return }
    self.close()
    handler.streamDidFail(failure)
    self.connection.streamDidClose(self)
  }

  /// The connection has ended, and has forgotten the stream.
  func connectionWasLost(_ error: ConnectError) {
    guard let handler = self.handler else { return }
    self.close()
    self.task?.cancel()
    handler.streamDidFail(HTTPStreamFailure(error: error, isUnprocessed: !self.hasBegun))
  }

  // MARK: HTTPStream

  func write(_ bytes: ByteBuffer) {
    guard self.handler != nil, !self.request.isComplete else { return }
    self.request.append(bytes, at: self.executor.now)
    self.schedulePump()
  }

  func finish(trailers: Headers) {
    guard self.handler != nil else { return }
    self.request.finish(at: self.executor.now)
  }

  func consume(_ count: Int) {
    self.response.consume(count)
    self.schedulePump()
  }

  func cancel() {
    guard self.handler != nil else { return }
    self.close()
    self.task?.cancel()
    self.connection.streamWasCancelled(self)
    if let onCallGivenUp = self.connection.onCallGivenUp { onCallGivenUp(self.connection) }
  }

  func expire() { self.cancel() }

  // MARK: Response

  func send(_ item: InMemoryResponse.Item) {
    self.response.append(item)
    self.schedulePump()
  }

  /// Schedules ``pump()``: the handler must not be called from within the call's own functions.
  func schedulePump() {
    guard self.handler != nil, !self.isPumpScheduled else { return }
    self.isPumpScheduled = true
    self.executor.execute {
      self.isPumpScheduled = false
      self.pump()
    }
  }

  private func pump() {
    if let handler = self.handler, self.request.takeWritable(window: self.connection.server.window) {
      handler.streamDidBecomeWritable()
    }
    while let handler = self.handler, let (part, sent, onSent) = self.response.next() {
      switch part {
      case .head(let head):
        self.connection.streamDidAnswer()
        handler.streamDidReceive(head)
      case .body(let bytes):
        handler.streamDidReceive(bytes)
      case .end(let trailers):
        self.close()
        handler.streamDidEnd(trailers: trailers)
        self.connection.streamDidClose(self)
      }
      sent?.resume(returning: ())
      onSent?()
    }
  }

  // MARK: End

  /// Ends the stream for both sides.
  private func close() {
    guard self.handler != nil else { return }
    self.handler = nil
    self.closeTime = self.executor.now
    self.waits.deadline?.cancel()
    self.interrupt(.clientIsGone)
    for item in self.response.takeAll() { item.onSent?() }
    self.request.removeAll()
    self.waits.close()
  }

  /// Fails what the server waits for, now and later. Sending stays possible, and no longer waits.
  func interrupt(_ error: ConnectError) {
    self.request.interrupt(error)
    self.response.interrupt(error)
    self.waits.interrupt(error)
  }
}
