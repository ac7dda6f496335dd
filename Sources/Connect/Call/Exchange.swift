internal import NIOCore

/// One attempt of a call on the wire: a request in the wire protocol, and the results that come back for it
/// when they are asked for.
///
/// Sends the request once more, unseen by anybody, if the server certainly did not process it.
/// Confined to the call's executor, which makes it `Sendable`.
final class Exchange: HTTPStreamHandler, @unchecked Sendable {
  enum Body {
    /// The whole request: one message, then the end.
    case message(ByteBuffer)
    /// Messages follow.
    case messages
  }

  /// How many bytes may wait in the transport before messages are held back.
  private static let writeHighWaterMark = 64 * 1024

  private let call: Call
  private let request: HTTPRequest<Void>
  private let body: Body
  private let endpoint: Result<any HTTPEndpoint, ConnectError>
  private var stream: (any HTTPStream)?
  private var decoder: any ResponseDecoder
  private let writer: RequestWriter
  private var isCancelled = false
  private var hasEndedOnWire = false

  /// What was sent, while it may have to be sent again.
  /// The first message whatever its size, since most calls have no other.
  private var sent = ReplayLog<ByteBuffer>(maximumBytes: writeHighWaterMark, keepsFirst: true)
  private var hasFinishedRequest = false
  private var unwrittenBytes = 0
  /// Bytes of the response that were given to us and that the transport may not yet replace by others.
  private var unconsumedBytes = 0

  private let startTime: Duration
  private var metrics: HTTPMetrics

  init(call: Call, request: HTTPRequest<Void>, body: Body) {
    self.call = call
    self.request = request
    self.body = body
    self.startTime = call.executor.now
    self.metrics = HTTPMetrics(attempt: call.attempt)
    self.decoder = call.client.makeDecoder(
      contentType: request.contentType,
      streamType: call.method.streamType
    )
    self.writer = RequestWriter(call)
    self.endpoint = call.client.endpoint(for: request.url.origin)
  }

  // MARK: Request

  func start() {
    do throws(ConnectError) {
      let endpoint = try self.endpoint.get()
      let (head, rest) = try self.makeHTTPRequest()
      self.stream = endpoint.startStream(head, handler: self)
      if let rest {
        self.write(rest)
        self.stream?.finish(trailers: self.request.trailers)
      }
    } catch {
      self.end(with: error)
    }
  }

  /// Whether request messages can be sent without piling up.
  var hasRoom: Bool { self.unwrittenBytes < Self.writeHighWaterMark || self.hasEndedOnWire }

  /// Whether the response has ended, so that sending more is of no use.
  var isOver: Bool { self.hasEndedOnWire || self.isCancelled }

  func send(_ message: ByteBuffer) {
    guard !self.isOver else { return }
    let bytes: ByteBuffer
    do throws(ConnectError) {
      bytes = try self.writer.body(of: message)
    } catch {
      // What the server has got so far is of no use without this message.
      self.stream?.cancel()
      self.stream = nil
      self.end(with: error)
      return
    }
    self.sent.append(bytes, byteCount: bytes.readableBytes)
    self.write(bytes)
  }

  func finishRequest() {
    guard !self.isOver else { return }
    self.hasFinishedRequest = true
    self.stream?.finish(trailers: self.request.trailers)
  }

  private func write(_ bytes: ByteBuffer) {
    self.unwrittenBytes += bytes.readableBytes
    self.metrics.requestBodyBytes += bytes.readableBytes
    self.stream?.write(bytes)
  }

  /// The request, and what is to be written behind it if it does not end there.
  private func makeHTTPRequest() throws(ConnectError) -> (head: HTTPStreamRequest, rest: ByteBuffer?) {
    switch self.body {
    case .message(let message):
      let (head, rest) = try self.writer.whole(self.request.with(message), timeout: self.call.remainingTime)
      if case .complete(let body) = head.body { self.metrics.requestBodyBytes = body.readableBytes }
      return (head, rest)
    case .messages:
      return (try self.writer.head(of: self.request, timeout: self.call.remainingTime), nil)
    }
  }

  // MARK: Response

  /// The next result; nil if more has to arrive, which this lets happen.
  func next() -> StreamResult<ByteBuffer>? {
    let result = self.decoder.next()
    if case .complete(_, .some, _) = result, self.call.endIfDeadlineHasPassed() { return nil }
    let held = result == nil ? 0 : self.decoder.bufferedByteCount
    let consumed = self.unconsumedBytes - held
    if consumed > 0 {
      self.unconsumedBytes -= consumed
      self.stream?.consume(consumed)
    }
    return result
  }

  /// The response's status and headers as they arrived.
  var head: HTTPResponseHead? { self.decoder.head }

  /// Gives up the exchange on the wire. Nothing is told of it any more.
  func cancel() {
    guard !self.isCancelled else { return }
    self.isCancelled = true
    guard !self.hasEndedOnWire else { return }
    self.stream?.cancel()
    self.stream = nil
    // Later: a hook could end the call, under the feet of whoever gives up this exchange.
    guard let hooks = self.call.metricsHooks else { return }
    let metrics = self.finalMetrics
    self.call.executor.execute { hooks.pass(metrics) }
  }

  /// Ends the exchange with an error that did not come from the transport.
  private func end(with error: ConnectError) {
    self.call.executor.execute {
      guard !self.isOver else { return }
      self.decoder.fail(error)
      self.endOnWire()
    }
  }

  private func endOnWire() {
    self.hasEndedOnWire = true
    self.stream = nil
    self.call.metricsHooks?.pass(self.finalMetrics)
    guard !self.isCancelled else { return }
    self.call.exchangeHasResults()
    self.call.exchangeHasRoom()
  }

  private var finalMetrics: HTTPMetrics {
    var metrics = self.metrics
    metrics.duration = self.elapsed
    metrics.httpStatus = self.decoder.head?.status
    return metrics
  }

  private var elapsed: Duration { self.call.executor.now - self.startTime }

  // MARK: HTTPStreamHandler

  func streamDidStart(on connection: HTTPConnectionInfo) {
    self.metrics.connection = connection
    self.metrics.timeToConnection = self.elapsed
  }

  func streamDidBecomeWritable() {
    guard !self.isOver else { return }
    self.unwrittenBytes = 0
    self.call.exchangeHasRoom()
  }

  func streamDidReceive(_ head: HTTPResponseHead) {
    guard !self.isOver else { return }
    self.sent.drop()
    self.metrics.timeToHeaders = self.elapsed
    self.decoder.receive(head)
    self.call.exchangeHasResults()
  }

  func streamDidReceive(_ bytes: ByteBuffer) {
    guard !self.isOver else { return }
    self.metrics.responseBodyBytes += bytes.readableBytes
    self.unconsumedBytes += bytes.readableBytes
    self.decoder.receive(bytes)
    self.call.exchangeHasResults()
  }

  func streamDidEnd(trailers: Headers) {
    guard !self.isOver else { return }
    self.decoder.receiveEnd(trailers: trailers)
    self.endOnWire()
  }

  func streamDidFail(_ failure: HTTPStreamFailure) {
    guard !self.isOver else { return }
    if self.call.endIfDeadlineHasPassed() { return }
    if failure.isUnprocessed, self.decoder.head == nil, self.sent.isComplete, self.call.takeTransparentRetry()
    {
      self.resend()
      return
    }
    self.decoder.fail(failure.error)
    self.endOnWire()
  }

  private func resend() {
    self.unwrittenBytes = 0
    self.metrics.requestBodyBytes = 0
    self.start()
    for bytes in self.sent.elements { self.write(bytes) }
    if self.hasFinishedRequest { self.stream?.finish(trailers: self.request.trailers) }
    self.call.exchangeHasRoom()
  }
}
