internal import Logging
internal import NIOCore

// What is around the pipeline: the caller, the codec, and the attempts.
extension Call: PipelineHost {
  var method: MethodInfo { self.plan.method.info }

  var taskExecutor: any TaskExecutor { self.plan.environment.taskExecutor }

  var inheritance: Inheritance? { self.plan.inheritance }

  func addMetricsHook(_ hook: MetricsReport.Hook) { self.attempts.metricsHooks.append(hook) }

  // MARK: Outside

  var demand: Int { self.side.demand }

  func deliver(_ result: ResultPart) {
    if result.isEnd { self.finish(with: result) } else { self.side.deliver(result) }
  }

  func takeOutgoing() -> RequestPart? { self.side.takeOutgoing(self) }

  func outgoingWasTaken() { self.side.outgoingWasTaken() }

  /// Whether to send more is of no use: the response has ended, and nothing can start it again.
  var isRequestObsolete: Bool {
    self.pipeline.isRequestObsolete(attemptIsOver: self.attempts.only?.isOver == true)
  }

  /// Whether a message of the caller would be taken at once.
  var acceptsMessage: Bool { !self.isRequestObsolete && self.pipeline.acceptsMessage(self) }

  // MARK: The codec

  func encode(_ part: RequestPart) throws(ConnectError) -> RequestPart {
    switch part {
    case .whole(let head, let message):
      let isDeterministic = head.encodesDeterministically || head.isGET == true
      return self.wholeRequest(head, try self.encode(message, deterministic: isDeterministic))
    case .message(let message): return .bytes(try self.encode(message, deterministic: false))
    case .wholeBytes, .head, .bytes, .end: return part
    }
  }

  private func encode(_ message: any AnyMessage, deterministic: Bool) throws(ConnectError) -> ByteBuffer {
    do {
      return try self.plan.method.encode(message, self.plan.environment.codec, deterministic)
    } catch {
      throw .encodingFailed(error, method: self.method)
    }
  }

  /// The request as byte hooks see it, which want to know whether it goes as GET.
  private func wholeRequest(_ head: RequestHead, _ bytes: ByteBuffer) -> RequestPart {
    guard head.isGET == true, self.pipeline.hasByteStages else { return .wholeBytes(head, bytes) }
    var request = HTTPRequest(head: head, message: bytes)
    request.isGET = self.plan.writer.goesAsGET(request)
    return request.part
  }

  func decode(_ result: ResultPart) throws(ConnectError) -> ResultPart {
    switch result {
    case .wholeBytes(let response): return .whole(self.decode(response))
    case .bytes(let bytes): return .message(try self.decode(bytes))
    case .message(let message): return .message(try self.decode(MessageBox<ByteBuffer>.of(message).message))
    case .whole, .headers, .end: return result
    }
  }

  private func decode(_ response: HTTPResponse) -> AnyResponse {
    if let error = response.error {
      return AnyResponse(.error(error), headers: response.headers, trailers: response.trailers)
    }
    if response.httpStatus == 304, response.message.readableBytes == 0 {
      let error = ConnectError.unansweredNotModified(response)
      return AnyResponse(.error(error), headers: response.headers, trailers: error.metadata)
    }
    return self.decode(response.message, response.headers, response.trailers, response.httpStatus)
  }

  private func decode(_ bytes: ByteBuffer, _ headers: Headers, _ trailers: Headers, _ httpStatus: Int?)
    -> AnyResponse
  {
    do {
      let message = try self.plan.method.decode(bytes, self.plan.environment.codec)
      return AnyResponse(.message(message), headers: headers, trailers: trailers)
    } catch {
      var error = ConnectError.decodingFailed(error, method: self.method)
      if error.httpStatus == nil { error.httpStatus = httpStatus }
      if error.metadata.isEmpty {
        error.metadata = headers
        error.metadata.append(contentsOf: trailers)
      }
      return AnyResponse(.error(error), headers: headers, trailers: trailers)
    }
  }

  private func decode(_ bytes: ByteBuffer) throws(ConnectError) -> any AnyMessage {
    do {
      return try self.plan.method.decode(bytes, self.plan.environment.codec)
    } catch {
      var error = ConnectError.decodingFailed(error, method: self.method)
      if error.httpStatus == nil { error.httpStatus = self.attempts.only?.head?.status }
      throw error
    }
  }

  // MARK: Inside

  var attemptHasRoom: Bool { self.attempts.only?.hasRoom ?? true }

  func transmit(_ part: RequestPart) {
    switch part {
    case .wholeBytes(let head, let bytes): self.attempts.begin(head, .message(bytes), self)
    case .whole(let head, let message):
      self.attempts.begin(head, .message(MessageBox<ByteBuffer>.of(message).message), self)
    case .head(let head): self.attempts.begin(head, .messages, self)
    case .bytes(let bytes): self.attempts.only?.send(bytes)
    case .message(let message): self.attempts.only?.send(MessageBox<ByteBuffer>.of(message).message)
    case .end: self.attempts.only?.finishRequest()
    }
  }

  func takeArrived() -> ResultPart? {
    guard self.plan.isUnary else { return self.attempts.only?.next() }
    guard let (collected, attempt) = self.attempts.takeResponse(self) else { return nil }
    // Without byte hooks the shorter way.
    if !self.pipeline.hasByteStages, case .success(.bytes(let bytes)) = collected.result {
      return .whole(self.decode(bytes, collected.headers, collected.trailers, 200))
    }
    return .wholeBytes(attempt.makeResponse(collected))
  }

  func dropAttempts() { self.attempts.drop() }

  /// An attempt may have results.
  func attemptHasResults(_ attempt: Attempt) {
    if self.attempts.isRunning(attempt) { self.pump() }
  }

  // MARK: Attempts

  func takeRetry(after delay: Duration) -> Bool {
    !self.isOver && !self.isEndingNow && self.attempts.takeRetry(after: delay, self)
  }

  func afterDelay(_ delay: Duration, _ work: @escaping () -> Void) {
    self.attempts.afterDelay(delay, self, work)
  }

  // MARK: Hooks

  func hookDid(_ action: HookAction, _ visit: Visit) {
    if case .metrics(let report) = visit.place {
      report.hookDid(action, visit.number, self)
    } else if self.isOver {
      self.logIgnored("the call is over")
    } else {
      self.pipeline.hookDid(action, visit, self)
    }
  }

  func hookWasDropped(_ place: Visit.Place, _ number: Int) {
    if let holder = self.pipeline.holder(of: place, number) {
      self.terminate(with: .abandoned(self.method, by: holder))
    }
  }

  func logIgnored(_ what: String) {
    self.plan.environment.logger.debug(
      "ignored: the call or the attempt is over, or the hook has proceeded before",
      metadata: ["rpc.method": "\(self.method.path)", "hook": "\(what)"]
    )
  }

  func run(_ job: Job) { self.side.run(job, self.executor) }

  func pump() {
    if !self.isOver { self.pipeline.move(self) }
  }

  func perform(_ work: @escaping (Pipeline) -> Void) {
    if !self.isOver { self.pipeline.perform(work, self) }
  }
}
