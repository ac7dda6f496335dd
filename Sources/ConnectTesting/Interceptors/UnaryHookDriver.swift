public import Connect
internal import NIOCore

/// Runs the hooks of one interceptor around a unary call, at one level; see ``InterceptorDriver``.
///
/// For an interceptor in its async form, verbs are derived from what it does. The argument of `next` is the request that it
/// proceeds with. A response or an error before that answers or fails the call. After `next`, its result is the response
/// that it proceeds with. If it calls `next` again, this is a retry; the delay is the virtual time that it took. If it
/// stops waiting for `next` and returns another response, it proceeds with this only once it is given a response, which is
/// too late.
public final class UnaryHookDriver<Message: Sendable, Response: Sendable>: Sendable {
  /// The request as hooks of this level see it.
  public typealias Request = HTTPRequest<Message>
  /// What the request hook was given, and what it did.
  public typealias RequestVisit = HookVisit<RequestVerb<Request, Response>>
  /// What the response hook was given, and what it did.
  public typealias ResponseVisit = HookVisit<ResponseVerb<Request, Response>>

  private typealias Session = HookSession<
    RequestVerb<Request, Response>, StreamDataVerb<Never>, ResponseVerb<Request, Response>
  >

  private let name: String
  private let session: Confined<Session>
  private let part: @Sendable (Response) -> ResultPart
  private let time: DriverTime
  private let lifetime: Lifetime

  private init(_ name: String, _ session: Session, _ time: DriverTime)
  where Response: DrivenResponse {
    let here = Confined(session, to: time.executor)
    self.name = name
    self.session = here
    self.part = { $0.resultPart }
    self.time = time
    self.lifetime = Lifetime { time.executor.execute { here.value.end() } }
  }

  /// The message hooks of `method`, or the async form.
  convenience init<Output>(
    _ driven: DrivenInterceptor,
    _ method: MethodSpec<Message, Output>,
    _ config: ProtocolClientConfig,
    _ time: DriverTime
  ) where Response == ResponseMessage<Output> {
    driven.tell(method.info)
    let plan = DrivenPlan(method: method.erased, isBytes: false, config: config, executor: time.executor)
    if case .messages(let form) = driven.interceptor.asyncUnaryForm {
      let session = Session(driven, plan, .unary(), isAsync: true) { run in
        DrivenLevel(asyncUnaryForm: .messages(NotedUnary(base: form, report: run.asyncReport)))
      }
      self.init("\(driven.name), unary async", session, time)
    } else {
      let hooks = OnceMade { driven.interceptor.unaryMessageFunction(method) }
      let session = Session(driven, plan, .unary(), isAsync: false) { run in
        DrivenLevel(messages: hooks.value.noted(by: run))
      }
      self.init("\(driven.name), unary message", session, time)
    }
  }

  /// The byte hooks, or the async form.
  convenience init(_ driven: DrivenInterceptor, _ config: ProtocolClientConfig, _ time: DriverTime)
  where Message == ByteBuffer, Response == HTTPResponse {
    let method = MethodSpec<ByteBuffer, ByteBuffer>.driven(.unary)
    let plan = DrivenPlan(method: method.erased, isBytes: true, config: config, executor: time.executor)
    if case .bytes(let form) = driven.interceptor.asyncUnaryForm {
      let session = Session(driven, plan, .unary(), isAsync: true) { run in
        DrivenLevel(asyncUnaryForm: .bytes(NotedUnaryBytes(base: form, report: run.asyncReport)))
      }
      self.init("\(driven.name), unary async byte", session, time)
    } else {
      let hooks = OnceMade { driven.interceptor.unaryFunction() }
      let session = Session(driven, plan, .unary(), isAsync: false) { run in
        DrivenLevel(unary: hooks.value.noted(by: run))
      }
      self.init("\(driven.name), unary byte", session, time)
    }
  }

  /// Begins a call: gives the request hook a request. A call that an earlier request has begun ends.
  public func request(_ request: Request) -> RequestVisit {
    let visit = RequestVisit("\(self.name) request", self.time, keeping: self.lifetime)
    self.perform { $0.request($0.driven.complete(request, .unary).part, visit.record) }
    return visit
  }

  /// Gives the response hook a response, or an error in one, once the request has passed the request hook.
  public func response(_ response: Response) -> ResponseVisit {
    let visit = ResponseVisit("\(self.name) response", self.time, keeping: self.lifetime)
    let part = self.part(response)
    self.perform { $0.result(part, visit.record) }
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

/// A value that is made at its first use.
final class OnceMade<Value> {
  private let make: () -> Value
  private(set) lazy var value = self.make()

  init(_ make: @escaping () -> Value) {
    self.make = make
  }
}
