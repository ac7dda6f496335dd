public import Connect

/// Runs the hooks of one interceptor around a stream, at one level; see ``InterceptorDriver``.
///
/// Values are given one after the other, whether or not the hook has proceeded with the earlier ones:
///
/// ```swift
/// let headers = driver.stream.result(.headers(["etag": ["1"]]))
/// XCTAssertTrue(headers.verbs.isEmpty)  // held back
/// let message = driver.stream.result(.message(bytes))
/// XCTAssertNotNil(try await headers.outcome.result)
/// ```
///
/// An interceptor in its async form looks the same from outside; it is told from what it reads and writes. What
/// `next` is called with is the head that it proceeds with, and `next` again is a retry in the place of the last
/// result that it was given, after as much virtual time as it took. A message or result goes on in the place of the one
/// that was read last; one that is followed by the next without any going on is a drop. What goes on before anything was
/// read does so in the place of the first value. A head that is followed by results before `next` is an answer, once
/// its end is there.
public final class StreamHookDriver<RequestMessage: Sendable, ResponseMessage: Sendable>: Sendable {
  public typealias RequestVisit = HookVisit<RequestVerb<HTTPRequest<Void>, StreamAnswer<ResponseMessage>>>
  public typealias MessageVisit = HookVisit<StreamDataVerb<RequestMessage>>
  public typealias ResultVisit = HookVisit<StreamResultVerb<ResponseMessage>>

  private let driven: DrivenInterceptor
  private let subject: any StreamSubject<RequestMessage, ResponseMessage>
  private let time: DriverTime
  private let lifetime: Lifetime?

  /// - Parameter lifetime: Ends the subject once neither the driver nor a visit needs it any more.
  init(
    _ driven: DrivenInterceptor,
    _ subject: any StreamSubject<RequestMessage, ResponseMessage>,
    _ time: DriverTime,
    keeping lifetime: Lifetime? = nil
  ) {
    self.driven = driven
    self.subject = subject
    self.time = time
    self.lifetime = lifetime
  }

  /// Gives the request hook the head of a request.
  public func request(_ head: HTTPRequest<Void>) -> RequestVisit {
    let visit = RequestVisit(self.subject.label("request"), self.time, keeping: self.lifetime)
    self.perform { self.subject.request(self.driven.complete(head, .bidirectionalStream), visit) }
    return visit
  }

  /// Gives the hook for request messages a message.
  public func requestMessage(_ message: RequestMessage) -> MessageVisit {
    let visit = MessageVisit(self.subject.label("request message"), self.time, keeping: self.lifetime)
    self.perform { self.subject.requestMessage(message, visit) }
    return visit
  }

  /// Ends the request. Only the async form sees that.
  public func finishRequest() {
    self.perform { self.subject.finishRequest() }
  }

  /// Gives the result hook headers, a message, or the end.
  public func result(_ result: StreamResult<ResponseMessage>) -> ResultVisit {
    let visit = ResultVisit(self.subject.label("result"), self.time, keeping: self.lifetime)
    self.perform { self.subject.result(result, visit) }
    return visit
  }

  /// Gives the metrics hook metrics. Message hooks and the async form see none, and pass them on.
  public func metrics(_ metrics: HTTPMetrics) -> HookVisit<HTTPMetrics> {
    let visit = HookVisit<HTTPMetrics>(self.subject.label("metrics"), self.time, keeping: self.lifetime)
    self.perform { self.subject.metrics(metrics, visit) }
    return visit
  }

  private func perform(_ work: @escaping @Sendable () -> Void) {
    self.time.executor.sync(work)
    self.time.executor.runUntilIdle()
  }
}

/// How an interceptor of streams is written: with hooks or with an async function. All functions are called on the
/// driver's executor.
protocol StreamSubject<RequestMessage, ResponseMessage>: Sendable {
  associatedtype RequestMessage: Sendable
  associatedtype ResponseMessage: Sendable

  func label(_ hook: String) -> String
  func request(
    _ head: HTTPRequest<Void>,
    _ visit: HookVisit<RequestVerb<HTTPRequest<Void>, StreamAnswer<ResponseMessage>>>
  )
  func requestMessage(_ message: RequestMessage, _ visit: HookVisit<StreamDataVerb<RequestMessage>>)
  func finishRequest()
  func result(
    _ result: StreamResult<ResponseMessage>,
    _ visit: HookVisit<StreamResultVerb<ResponseMessage>>
  )
  func metrics(_ metrics: HTTPMetrics, _ visit: HookVisit<HTTPMetrics>)
}

/// An interceptor's hooks, asked for with the first value. Confined to the driver's executor, which makes it
/// `Sendable`.
final class StreamHookSubject<RequestMessage: Sendable, ResponseMessage: Sendable>: StreamSubject,
  @unchecked Sendable
{
  private let name: String
  private lazy var hooks: StreamHooks<RequestMessage, ResponseMessage> = self.makeHooks()
  private let makeHooks: () -> StreamHooks<RequestMessage, ResponseMessage>

  init(
    _ interceptor: String,
    _ level: String,
    _ makeHooks: @escaping () -> StreamHooks<RequestMessage, ResponseMessage>
  ) {
    self.name = "\(interceptor), \(level)"
    self.makeHooks = makeHooks
  }

  func label(_ hook: String) -> String { "\(self.name) \(hook)" }

  func request(
    _ head: HTTPRequest<Void>,
    _ visit: HookVisit<RequestVerb<HTTPRequest<Void>, StreamAnswer<ResponseMessage>>>
  ) {
    let proceed = visit.makeProceed()
    guard let function = self.hooks.requestFunction else { return proceed(.success(head)) }
    function(head, proceed)
  }

  func requestMessage(_ message: RequestMessage, _ visit: HookVisit<StreamDataVerb<RequestMessage>>) {
    let proceed = visit.makeProceed()
    guard let function = self.hooks.requestMessageFunction else { return proceed(message) }
    function(message, proceed)
  }

  func finishRequest() {}

  func result(
    _ result: StreamResult<ResponseMessage>,
    _ visit: HookVisit<StreamResultVerb<ResponseMessage>>
  ) {
    let proceed = visit.makeProceed()
    guard let function = self.hooks.streamResultFunction else { return proceed(result) }
    function(result, proceed)
  }

  func metrics(_ metrics: HTTPMetrics, _ visit: HookVisit<HTTPMetrics>) {
    let proceed = visit.makeProceed()
    guard let function = self.hooks.responseMetricsFunction else { return proceed(metrics) }
    function(metrics, proceed)
  }
}
