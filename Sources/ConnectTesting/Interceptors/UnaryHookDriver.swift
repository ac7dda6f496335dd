public import Connect

/// Runs the hooks of one interceptor around a unary call, at one level; see ``InterceptorDriver``.
///
/// An interceptor in its async form looks the same from outside. What it gives to `next` is the request that it
/// proceeds with; a response or an error before that answers or fails the call. Behind `next`, what it returns is the
/// response that it proceeds with, and `next` again is a retry, after as much virtual time as it took. One that gives
/// up waiting for `next` and returns something of its own proceeds with that when it is given a response, which is too
/// late.
public final class UnaryHookDriver<Message: Sendable, Response: Sendable>: Sendable {
  public typealias Request = HTTPRequest<Message>
  public typealias RequestVisit = HookVisit<RequestVerb<Request, Response>>
  public typealias ResponseVisit = HookVisit<ResponseVerb<Request, Response>>

  private let driven: DrivenInterceptor
  private let subject: any UnarySubject<Message, Response>
  private let time: DriverTime
  private let lifetime: Lifetime?

  /// - Parameter lifetime: Ends the subject once neither the driver nor a visit needs it any more.
  init(
    _ driven: DrivenInterceptor,
    _ subject: any UnarySubject<Message, Response>,
    _ time: DriverTime,
    keeping lifetime: Lifetime? = nil
  ) {
    self.driven = driven
    self.subject = subject
    self.time = time
    self.lifetime = lifetime
  }

  /// Gives the request hook a request.
  public func request(_ request: Request) -> RequestVisit {
    let visit = RequestVisit(self.subject.label("request"), self.time, keeping: self.lifetime)
    self.perform { self.subject.request(self.driven.complete(request, .unary), visit) }
    return visit
  }

  /// Gives the response hook a response, or an error in one.
  public func response(_ response: Response) -> ResponseVisit {
    let visit = ResponseVisit(self.subject.label("response"), self.time, keeping: self.lifetime)
    self.perform { self.subject.response(response, visit) }
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

/// How an interceptor of unary calls is written: with hooks or with an async function. All functions are called on
/// the driver's executor.
protocol UnarySubject<Message, Response>: Sendable {
  associatedtype Message: Sendable
  associatedtype Response: Sendable

  func label(_ hook: String) -> String
  func request(
    _ request: HTTPRequest<Message>,
    _ visit: HookVisit<RequestVerb<HTTPRequest<Message>, Response>>
  )
  func response(_ response: Response, _ visit: HookVisit<ResponseVerb<HTTPRequest<Message>, Response>>)
  func metrics(_ metrics: HTTPMetrics, _ visit: HookVisit<HTTPMetrics>)
}

/// An interceptor's hooks, asked for with the first value. Confined to the driver's executor, which makes it
/// `Sendable`.
final class UnaryHookSubject<Message: Sendable, Response: Sendable>: UnarySubject, @unchecked Sendable {
  private let name: String
  private lazy var hooks: UnaryHooks<Message, Response> = self.makeHooks()
  private let makeHooks: () -> UnaryHooks<Message, Response>

  init(
    _ interceptor: String,
    _ level: String,
    _ makeHooks: @escaping () -> UnaryHooks<Message, Response>
  ) {
    self.name = "\(interceptor), \(level)"
    self.makeHooks = makeHooks
  }

  func label(_ hook: String) -> String { "\(self.name) \(hook)" }

  func request(
    _ request: HTTPRequest<Message>,
    _ visit: HookVisit<RequestVerb<HTTPRequest<Message>, Response>>
  ) {
    let proceed = visit.makeProceed()
    guard let function = self.hooks.requestFunction else { return proceed(.success(request)) }
    function(request, proceed)
  }

  func response(_ response: Response, _ visit: HookVisit<ResponseVerb<HTTPRequest<Message>, Response>>) {
    let proceed = visit.makeProceed()
    guard let function = self.hooks.responseFunction else { return proceed(response) }
    function(response, proceed)
  }

  func metrics(_ metrics: HTTPMetrics, _ visit: HookVisit<HTTPMetrics>) {
    let proceed = visit.makeProceed()
    guard let function = self.hooks.responseMetricsFunction else { return proceed(metrics) }
    function(metrics, proceed)
  }
}
