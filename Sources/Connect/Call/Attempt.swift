internal import NIOCore

/// One attempt of a call on the wire: a request in the wire protocol, and the results that come back for it
/// when they are asked for.
///
/// Sends the request once more, unseen by anybody, if the server certainly did not process it.
/// Confined to the call's executor.
final class Attempt: HTTPStreamHandler {
  enum Body {
    /// The whole request: one message, then the end.
    case message(ByteBuffer)
    /// The whole request as another attempt has sent it.
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
  /// Whether it started beside another one that still ran.
  let isHedge: Bool
  /// Makes one response of the results, for unary calls.
  private var collector: SingleMessageCollector
  private var stream: (any HTTPStream)?
  private let decoder: any BoxedDecoder
  /// Whether anything of it has been given to the transport.
  private var hasStarted = false
  private var requestBodyBytes = 0
  private var responseBodyBytes = 0
  private var remoteAddress: String?
  /// The response's status and headers as they arrived.
  private(set) var head: HTTPResponseHead?
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
  private let meter: AttemptMeter?

  init(_ call: Call, _ request: RequestHead, isHedge: Bool) {
    self.call = call
    self.request = request
    self.isHedge = isHedge
    self.collector = SingleMessageCollector(method: call.method)
    self.meter = AttemptMeter.make(call)
    self.decoder = call.plan.environment.makeDecoder(
      contentType: request.contentType,
      streamType: call.method.streamType
    )
  }

  // MARK: Request

  func start(_ body: consuming Body) {
    do throws(ConnectError) {
      let endpoint = try self.call.plan.environment.endpoint(for: self.request.url.origin).get()
      switch consume body {
      case .message(let message):
        let (head, rest) = try self.call.plan.writer.whole(
          self.request,
          message: message,
          timeout: self.call.plan.remainingTime
        )
        self.start(head, rest, on: endpoint)
      case .written(var written):
        if let timeout = self.call.plan.remainingTime {
          self.call.plan.writer.renewTimeout(of: &written.head, to: timeout)
        }
        self.start(written.head, written.rest, on: endpoint)
      case .messages:
        self.start(
          try self.call.plan.writer.head(of: self.request, timeout: self.call.plan.remainingTime),
          on: endpoint
        )
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

  /// The whole request, so that another attempt can send it, too. Nil if it could not be sent, or not any more.
  var written: Written? {
    self.sentHead.map { Written(head: $0, rest: self.sent.elements.first) }
  }

  private func start(_ head: HTTPStreamRequest, on endpoint: any HTTPEndpoint) {
    self.sentHead = head
    self.sentMethod = head.method
    if !self.hasStarted { self.call.attempts.countSent() }
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
      bytes = try self.call.plan.writer.body(of: consume message)
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
  func next() -> ResultPart? {
    if let message = self.decoder.nextPlainMessage() {
      self.settleConsumption(isEmpty: false)
      return .bytes(message)
    }
    let result: ResultPart?
    let decoded: StreamResult<ByteBuffer>? = self.decoder.next()
    switch decoded {
    case .headers(let headers): result = .headers(headers)
    case .message(let bytes): result = .bytes(bytes)
    case .complete(_, nil, let trailers): result = .end(nil, trailers: trailers)
    case .complete(_, let error?, let trailers):
      if self.call.endIfDeadlineHasPassed() { return nil }
      result = .end(self.naming(error), trailers: trailers)
    case nil: result = nil
    }
    self.settleConsumption(isEmpty: result == nil)
    return result
  }

  /// The one response that the results of a unary call come to, once that is known.
  func takeResponse() -> SingleMessage? {
    while let result = self.next() {
      if let collected = self.collector.receive(result) { return collected }
    }
    return nil
  }

  /// Gives an error that the transport or the decoder has found the name of the request.
  private func naming(_ error: ConnectError) -> ConnectError {
    error.naming(
      self.request.url,
      method: self.sentMethod,
      answeredWith: self.head,
      over: self.call.plan.environment.wire
    )
  }

  /// Whether the response says that what the request has named is still current. That is no error.
  var isNotModified: Bool {
    self.head?.status == 304 && self.request.headers.contains("if-none-match")
  }

  /// A response to a unary call as byte hooks see it.
  func makeResponse(_ collected: SingleMessage) -> HTTPResponse {
    var message = ByteBuffer()
    var error: ConnectError?
    switch collected.result {
    case .success(.bytes(let bytes)): message = bytes
    case .success: break
    case .failure(let failure): error = self.isNotModified ? nil : failure
    }
    if error != nil, error?.httpStatus == nil { error?.httpStatus = self.head?.status }
    return HTTPResponse(
      headers: collected.headers,
      message: message,
      trailers: collected.trailers,
      error: error,
      httpStatus: self.head?.status,
      httpHeaders: self.head?.headers ?? Headers(),
      request: self.request
    )
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

  /// Gives up the attempt on the wire. Nothing is told of it any more.
  func cancel() {
    guard !self.isCancelled else { return }
    self.isCancelled = true
    guard !self.hasEndedOnWire else { return }
    self.stream?.cancel()
    self.stream = nil
    // Later: a hook could end the call, under the feet of whoever gives up this attempt.
    self.meter?.finishLater(self.call)
  }

  /// Ends the attempt with an error that did not come from the transport.
  private func end(with error: ConnectError) {
    let here = Confined(self, to: self.call.executor)
    self.call.executor.execute {
      let attempt = here.value
      guard !attempt.isOver else { return }
      attempt.decoder.fail(error)
      attempt.endOnWire()
    }
  }

  private func endOnWire() {
    self.hasEndedOnWire = true
    self.stream = nil
    self.meter?.finish(self.call)
    guard !self.isCancelled else { return }
    self.call.attemptHasResults(self)
    self.call.pump()
  }

  // MARK: HTTPStreamHandler

  func streamDidStart(on connection: HTTPConnectionInfo) {
    self.remoteAddress = connection.remoteAddress
    self.meter?.didStart(on: connection, self.call)
  }

  func streamDidBecomeWritable() {
    guard !self.isOver else { return }
    self.unwrittenBytes = 0
    self.call.pump()
  }

  func streamDidReceive(_ head: HTTPResponseHead) {
    guard !self.isOver else { return }
    self.sent.drop()
    self.sentHead = nil
    self.meter?.didReceive(head, self.call)
    if self.head == nil { self.head = head }
    self.decoder.receive(head)
    self.call.attemptHasResults(self)
  }

  func streamDidReceive(_ bytes: ByteBuffer) {
    guard !self.isOver else { return }
    self.responseBodyBytes += bytes.readableBytes
    self.meter?.didReceive(bytes.readableBytes)
    self.unconsumedBytes += bytes.readableBytes
    self.decoder.receive(bytes)
    self.call.attemptHasResults(self)
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
      self.call.attempts.takeTransparentRetry(of: self)
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
      let endpoint = try self.call.plan.environment.endpoint(for: self.request.url.origin).get()
      var head = head
      if let timeout = self.call.plan.remainingTime {
        self.call.plan.writer.renewTimeout(of: &head, to: timeout)
      }
      self.unwrittenBytes = 0
      self.start(head, on: endpoint)
      for bytes in self.sent.elements { self.write(bytes) }
      if self.hasFinishedRequest { self.stream?.finish(trailers: self.request.trailers) }
      self.call.pump()
    } catch {
      self.end(with: error)
    }
  }
}
