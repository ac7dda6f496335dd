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

  private let session: HookSession

  /// - Parameters:
  ///   - form: The async form, if the interceptor has one.
  ///   - hooks: Asks for the hooks.
  private init(
    _ driven: InterceptorUnderTest,
    _ setup: DriverSetup,
    isBytes: Bool,
    _ form: ((CallRecorder) -> AsyncStreamForm)?,
    hooks: @escaping () -> StreamHooks<RequestMessage, ResponseMessage>
  ) {
    let hooks = OnceMade { form == nil ? hooks() : StreamHooks() }
    self.session = HookSession(
      "\(driven.name), stream",
      setup.at(isBytes: isBytes, isAsync: form != nil),
      metricsHook: { isBytes ? hooks.value.responseMetricsFunction : nil }
    ) { setup, head, record in
      let call = DriverStreamCall<RequestMessage, ResponseMessage>(setup, request: record)
      let head = (head as? HTTPRequest<Void>).map { driven.complete($0, .bidirectionalStream) }
      call.start(head, form?(CallRecorder(call)), hooks.value.recorded(by: call))
      return call
    }
  }

  /// The message hooks of `method`, or the async form.
  convenience init(
    _ driven: InterceptorUnderTest,
    _ method: MethodSpec<RequestMessage, ResponseMessage>,
    _ setup: DriverSetup
  ) {
    driven.tell(method.info)
    var form: ((CallRecorder) -> AsyncStreamForm)?
    if case .messages(let base) = driven.interceptor.asyncStreamForm {
      form = { .messages(RecordedStream(base: base, method: method, recorder: $0)) }
    }
    self.init(driven, setup, isBytes: false, form) { driven.interceptor.streamMessageFunction(method) }
  }

  /// The byte hooks, or the async form.
  convenience init(_ driven: InterceptorUnderTest, _ setup: DriverSetup)
  where RequestMessage == ByteBuffer, ResponseMessage == ByteBuffer {
    var form: ((CallRecorder) -> AsyncStreamForm)?
    if case .bytes(let base) = driven.interceptor.asyncStreamForm {
      form = { .bytes(RecordedStreamBytes(base: base, recorder: $0)) }
    }
    self.init(driven, setup, isBytes: true, form) { driven.interceptor.streamFunction() }
  }

  /// Begins a call: gives the request hook the head of a request. A call that an earlier request has begun ends.
  public func request(_ head: HTTPRequest<Void>) -> RequestVisit {
    self.session.visit("request") { $0.request(head, $1) }
  }

  /// Gives the hook for request messages a message.
  public func requestMessage(_ message: RequestMessage) -> MessageVisit {
    self.session.visit("request message") { $0.message(message, $1) }
  }

  /// Ends the request. Only the async form sees that.
  public func finishRequest() {
    self.session.perform { $0.finishRequest() }
  }

  /// Gives the result hook headers, a message, or the end, once the request has passed the request hook.
  public func result(_ result: StreamResult<ResponseMessage>) -> ResultVisit {
    self.session.visit("result") { $0.result(result, $1) }
  }

  /// Gives the metrics hook metrics. Message hooks and the async form see none, and pass them on.
  public func metrics(_ metrics: HTTPMetrics) -> HookVisit<HTTPMetrics> {
    self.session.visit("metrics") { $0.metrics(metrics, $1) }
  }
}
