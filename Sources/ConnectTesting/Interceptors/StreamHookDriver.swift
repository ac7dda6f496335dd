public import Connect
internal import NIOCore

/// Runs the hooks of one interceptor around a stream, at one level; see ``InterceptorDriver``.
///
/// Values are given one after the other, whether or not the hook has proceeded with the earlier ones:
///
/// ```swift
/// let headers = driver.stream.result(.headers(["etag": ["1"]]))
/// XCTAssertTrue(headers.verbs.isEmpty)  // held back
/// let message = driver.stream.result(.message(bytes))
/// let passedOn = try await headers.outcome.result
/// XCTAssertNotNil(passedOn)
/// ```
///
/// For an interceptor in its async form, verbs are derived from what it reads and writes:
///
/// - The argument of `next` is the head that it proceeds with. If it calls `next` again, this is a retry in place of the
///   last result that it was given; the delay is the virtual time that it took.
/// - A message or result that it passes on counts for the value that it read last, or for the first value if it has read
///   none. A value is dropped if the next is read before anything is passed on.
/// - Results that it gives before it calls `next` are an answer, once their end is there.
public final class StreamHookDriver<RequestMessage: Sendable, ResponseMessage: Sendable>: Sendable {
  /// What the hook for the request's head was given, and what it did.
  public typealias RequestVisit = HookVisit<RequestVerb<HTTPRequest<Void>, StreamAnswer<ResponseMessage>>>
  /// What the hook for request messages was given, and what it did.
  public typealias MessageVisit = HookVisit<StreamDataVerb<RequestMessage>>
  /// What the hook for results was given, and what it did.
  public typealias ResultVisit = HookVisit<StreamResultVerb<ResponseMessage>>

  private typealias Session = HookSession<
    RequestVerb<HTTPRequest<Void>, StreamAnswer<ResponseMessage>>,
    StreamDataVerb<RequestMessage>,
    StreamResultVerb<ResponseMessage>
  >

  private let name: String
  private let session: Confined<Session>
  private let time: DriverTime
  private let lifetime: Lifetime

  private init(_ name: String, _ session: Session, _ time: DriverTime) {
    let here = Confined(session, to: time.executor)
    self.name = name
    self.session = here
    self.time = time
    self.lifetime = Lifetime { time.executor.execute { here.value.end() } }
  }

  /// The message hooks of `method`, or the async form.
  convenience init(
    _ driven: DrivenInterceptor,
    _ method: MethodSpec<RequestMessage, ResponseMessage>,
    _ config: ProtocolClientConfig,
    _ time: DriverTime
  ) {
    driven.tell(method.info)
    let plan = DrivenPlan(method: method.erased, isBytes: false, config: config, executor: time.executor)
    if case .messages(let form) = driven.interceptor.asyncStreamForm {
      let session = Session(driven, plan, .stream(), isAsync: true) { run in
        DrivenLevel(asyncStreamForm: .messages(NotedStream(base: form, report: run.asyncReport)))
      }
      self.init("\(driven.name), stream async", session, time)
    } else {
      let hooks = OnceMade { driven.interceptor.streamMessageFunction(method) }
      let session = Session(driven, plan, .stream(), isAsync: false) { run in
        DrivenLevel(messages: hooks.value.noted(by: run))
      }
      self.init("\(driven.name), stream message", session, time)
    }
  }

  /// The byte hooks, or the async form.
  convenience init(_ driven: DrivenInterceptor, _ config: ProtocolClientConfig, _ time: DriverTime)
  where RequestMessage == ByteBuffer, ResponseMessage == ByteBuffer {
    let method = MethodSpec<ByteBuffer, ByteBuffer>.driven(.bidirectionalStream)
    let plan = DrivenPlan(method: method.erased, isBytes: true, config: config, executor: time.executor)
    if case .bytes(let form) = driven.interceptor.asyncStreamForm {
      let session = Session(driven, plan, .stream(), isAsync: true) { run in
        DrivenLevel(asyncStreamForm: .bytes(NotedStreamBytes(base: form, report: run.asyncReport)))
      }
      self.init("\(driven.name), stream async byte", session, time)
    } else {
      let hooks = OnceMade { driven.interceptor.streamFunction() }
      let session = Session(driven, plan, .stream(), isAsync: false) { run in
        DrivenLevel(stream: hooks.value.noted(by: run))
      }
      self.init("\(driven.name), stream byte", session, time)
    }
  }

  /// Begins a call: gives the request hook the head of a request. A call that an earlier request has begun ends.
  public func request(_ head: HTTPRequest<Void>) -> RequestVisit {
    let visit = RequestVisit("\(self.name) request", self.time, keeping: self.lifetime)
    self.perform { $0.request($0.driven.complete(head, .bidirectionalStream).part, visit.record) }
    return visit
  }

  /// Gives the hook for request messages a message.
  public func requestMessage(_ message: RequestMessage) -> MessageVisit {
    let visit = MessageVisit("\(self.name) request message", self.time, keeping: self.lifetime)
    self.perform { $0.message(.message(MessageBox(message)), visit.record) }
    return visit
  }

  /// Ends the request. Only the async form sees that.
  public func finishRequest() {
    self.perform { $0.finishRequest() }
  }

  /// Gives the result hook headers, a message, or the end, once the request has passed the request hook.
  public func result(_ result: StreamResult<ResponseMessage>) -> ResultVisit {
    let visit = ResultVisit("\(self.name) result", self.time, keeping: self.lifetime)
    self.perform { $0.result(result.part, visit.record) }
    return visit
  }

  /// Gives the metrics hook metrics. Message hooks and the async form see none, and pass them on.
  public func metrics(_ metrics: HTTPMetrics) -> HookVisit<HTTPMetrics> {
    let visit = HookVisit<HTTPMetrics>("\(self.name) metrics", self.time, keeping: self.lifetime)
    self.perform { $0.metrics(metrics, visit.record) }
    return visit
  }

  private func perform(_ work: @escaping @Sendable (Session) -> Void) {
    self.time.executor.sync { work(self.session.value) }
    self.time.executor.runUntilIdle()
  }
}
