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
    /// The whole request as another exchange has sent it.
    case written(Written)
    /// Messages follow.
    case messages
  }

  /// A whole request in the wire protocol: what is to be started, and what is to be written behind that if the request
  /// does not end there.
  struct Written {
    var head: HTTPStreamRequest
    var rest: ByteBuffer?
  }

  /// How many bytes may wait in the transport before messages are held back.
  private static let writeHighWaterMark = 64 * 1024

  /// How many bytes of the response may be taken before the transport hears of it, if more of them are there.
  private static let consumptionStep = 16 * 1024

  private let call: Call
  /// As it left the interceptors.
  let request: RequestHead
  private var stream: (any HTTPStream)?
  /// What it calls may end the call, which does not come here: see `cancel()`.
  @exclusivity(unchecked) private var decoder: any ResponseDecoder & AnyObject
  /// Whether anything of it has been given to the transport.
  private var hasStarted = false
  private var requestBodyBytes = 0
  private var responseBodyBytes = 0
  private var remoteAddress: String?
  /// The response's status and headers as they arrived.
  private(set) var head: HTTPResponseHead?
  private let writer: RequestWriter
  private var isCancelled = false
  private var hasEndedOnWire = false

  /// What was sent, while it may have to be sent again: the head, with a body that is known as a whole...
  private var sentHead: HTTPStreamRequest?
  /// ... and what followed. The first message whatever its size, since most calls have no other.
  private var sent = ReplayLog<ByteBuffer>(maximumBytes: writeHighWaterMark, keepsFirst: true)
  private var hasFinishedRequest = false
  /// For errors.
  private var sentMethod = HTTPStreamRequest.Method.post
  private var unwrittenBytes = 0
  /// Bytes of the response that were given to us and that the transport may not yet replace by others.
  private var unconsumedBytes = 0

  /// Nil if nobody wants to know.
  private var meter: ExchangeMeter?

  init(call: Call, request: RequestHead) {
    self.call = call
    self.request = request
    self.meter = call.makeMeter()
    self.decoder = call.client.makeDecoder(
      contentType: request.contentType,
      streamType: call.method.streamType
    )
    self.writer = call.writer
  }

  // MARK: Request

  func start(_ body: consuming Body) {
    do throws(ConnectError) {
      let endpoint = try self.call.client.endpoint(for: self.request.url.origin).get()
      switch consume body {
      case .message(let message):
        let (head, rest) = try self.writer.whole(
          self.request,
          message: message,
          timeout: self.call.remainingTime
        )
        self.start(head, rest, on: endpoint)
      case .written(var written):
        if let timeout = self.call.remainingTime { self.writer.renewTimeout(of: &written.head, to: timeout) }
        self.start(written.head, written.rest, on: endpoint)
      case .messages:
        self.start(try self.writer.head(of: self.request, timeout: self.call.remainingTime), on: endpoint)
      }
    } catch {
      self.end(with: error)
    }
  }

  private func start(_ head: HTTPStreamRequest, _ rest: ByteBuffer?, on endpoint: any HTTPEndpoint) {
    self.start(head, on: endpoint)
    guard let rest else { return }
    self.sent.append(rest, byteCount: rest.readableBytes)
    self.write(rest)
    self.finishRequest()
  }

  /// The whole request, so that another exchange can send it, too. Nil if it could not be sent, or not any more.
  var written: Written? {
    self.sentHead.map { Written(head: $0, rest: self.sent.elements.first) }
  }

  private func start(_ head: HTTPStreamRequest, on endpoint: any HTTPEndpoint) {
    self.sentHead = head
    self.sentMethod = head.method
    if !self.hasStarted { self.call.countExchange() }
    self.hasStarted = true
    self.remoteAddress = nil
    self.requestBodyBytes = 0
    if case .complete(let body) = head.body { self.requestBodyBytes = body.readableBytes }
    self.meter?.willStart(head)
    self.stream = endpoint.startStream(head, handler: self)
  }

  /// Whether request messages can be sent without piling up.
  var hasRoom: Bool { self.unwrittenBytes < Self.writeHighWaterMark || self.hasEndedOnWire }

  /// Whether the response has ended, so that sending more is of no use.
  var isOver: Bool { self.hasEndedOnWire || self.isCancelled }

  /// - Parameter message: Framed in place if nobody else holds it.
  func send(_ message: consuming ByteBuffer) {
    guard !self.isOver else { return }
    let bytes: ByteBuffer
    do throws(ConnectError) {
      bytes = try self.writer.body(of: consume message)
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
    self.requestBodyBytes += bytes.readableBytes
    self.meter?.willWrite(bytes.readableBytes)
    self.stream?.write(bytes)
  }

  // MARK: Response

  /// The next result; nil if more has to arrive, which this lets happen.
  func next() -> StreamResult<ByteBuffer>? {
    var result = self.decoder.next()
    if case .complete(let code, let error?, let trailers) = result {
      if self.call.endIfDeadlineHasPassed() { return nil }
      result = .complete(code: code, error: self.naming(error), trailers: trailers)
    }
    self.settleConsumption(isEmpty: result == nil)
    return result
  }

  /// Gives an error that the transport or the decoder has found the name of the request.
  private func naming(_ error: ConnectError) -> ConnectError {
    error.naming(
      self.request.url,
      method: self.sentMethod,
      answeredWith: self.head,
      over: self.call.client.wire
    )
  }

  /// The next result's message, if that is a message and is there; nil says nothing. A shorter way than ``next()``.
  func nextPlainMessage() -> ByteBuffer? {
    guard let message = self.decoder.nextPlainMessage() else { return nil }
    self.settleConsumption(isEmpty: false)
    return message
  }

  /// Gives back to the transport what was taken.
  private func settleConsumption(isEmpty: Bool) {
    guard self.unconsumedBytes > 0 else { return }
    let consumed = self.unconsumedBytes - (isEmpty ? 0 : self.decoder.bufferedByteCount)
    guard consumed >= Self.consumptionStep || (isEmpty && consumed > 0) else { return }
    self.unconsumedBytes -= consumed
    self.stream?.consume(consumed)
  }

  /// What call hooks are told of it; nil if nothing went to the network.
  var summary: CallOutcome.Exchange? {
    guard self.hasStarted else { return nil }
    return CallOutcome.Exchange(
      httpStatus: self.head?.status,
      requestBodyBytes: self.requestBodyBytes,
      responseBodyBytes: self.responseBodyBytes,
      remoteAddress: self.remoteAddress
    )
  }

  /// Gives up the exchange on the wire. Nothing is told of it any more.
  func cancel() {
    guard !self.isCancelled else { return }
    self.isCancelled = true
    guard !self.hasEndedOnWire else { return }
    self.stream?.cancel()
    self.stream = nil
    // Later: a hook could end the call, under the feet of whoever gives up this exchange.
    self.meter?.finishLater()
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
    self.meter?.finish()
    guard !self.isCancelled else { return }
    self.call.exchangeHasResults(self)
    self.call.exchangeHasRoom()
  }

  // MARK: HTTPStreamHandler

  func streamDidStart(on connection: HTTPConnectionInfo) {
    self.remoteAddress = connection.remoteAddress
    self.meter?.didStart(on: connection)
  }

  func streamDidBecomeWritable() {
    guard !self.isOver else { return }
    self.unwrittenBytes = 0
    self.call.exchangeHasRoom()
  }

  func streamDidReceive(_ head: HTTPResponseHead) {
    guard !self.isOver else { return }
    self.sent.drop()
    self.sentHead = nil
    self.meter?.didReceive(head)
    if self.head == nil { self.head = head }
    self.decoder.receive(head)
    self.call.exchangeHasResults(self)
  }

  func streamDidReceive(_ bytes: ByteBuffer) {
    guard !self.isOver else { return }
    self.responseBodyBytes += bytes.readableBytes
    self.meter?.didReceive(bytes.readableBytes)
    self.unconsumedBytes += bytes.readableBytes
    self.decoder.receive(bytes)
    self.call.exchangeHasResults(self)
    self.decoder.settle()
  }

  func streamDidEnd(trailers: Headers) {
    guard !self.isOver else { return }
    self.decoder.receiveEnd(trailers: trailers)
    self.endOnWire()
  }

  func streamDidFail(_ failure: HTTPStreamFailure) {
    guard !self.isOver else { return }
    if self.call.endIfDeadlineHasPassed() { return }
    if failure.isUnprocessed, let head = self.sentHead, self.sent.isComplete,
      self.call.takeTransparentRetry(of: self)
    {
      self.resend(head)
      return
    }
    var error = failure.error
    if error.code == .unavailable { error.isConnectionLost = true }
    self.decoder.fail(error)
    self.endOnWire()
  }

  private func resend(_ head: HTTPStreamRequest) {
    do throws(ConnectError) {
      let endpoint = try self.call.client.endpoint(for: self.request.url.origin).get()
      var head = head
      if let timeout = self.call.remainingTime { self.writer.renewTimeout(of: &head, to: timeout) }
      self.unwrittenBytes = 0
      self.start(head, on: endpoint)
      for bytes in self.sent.elements { self.write(bytes) }
      if self.hasFinishedRequest { self.stream?.finish(trailers: self.request.trailers) }
      self.call.exchangeHasRoom()
    } catch {
      self.end(with: error)
    }
  }
}
