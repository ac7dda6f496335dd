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

  private let session: HookSession

  /// - Parameters:
  ///   - method: The method that is called.
  ///   - form: The async form, if the interceptor has one.
  ///   - hooks: Asks for the hooks.
  private init<Output: Sendable>(
    _ driven: InterceptorUnderTest,
    _ setup: DriverSetup,
    isBytes: Bool,
    _ method: MethodSpec<Message, Output>,
    _ form: AsyncUnaryForm?,
    hooks: @escaping () -> UnaryHooks<Message, Response>
  ) where Response: UnaryResponse {
    let hooks = OnceMade { form == nil ? hooks() : UnaryHooks() }
    self.session = HookSession(
      "\(driven.name), unary",
      setup.at(isBytes: isBytes, isAsync: form != nil),
      metricsHook: { isBytes ? hooks.value.responseMetricsFunction : nil }
    ) { setup, request, record in
      let call = DriverUnaryCall(setup, request: record)
      if let request = (request as? Request).map({ driven.complete($0, .unary) }) {
        call.start(request.message, request.with(()), form, hooks.value.recorded(by: call), method)
      } else if isBytes {
        let method = MethodSpec<ByteBuffer, Output>.driver(.unary)
        call.start(ByteBuffer(), nil, nil, hooks.value.recordedWithoutRequest(by: call), method)
      } else {
        let method = MethodSpec<Void, Output>.driver(.unary)
        call.start((), nil, nil, hooks.value.recordedWithoutRequest(by: call), method)
      }
      return call
    }
  }

  /// The message hooks of `method`, or the async form.
  convenience init<Output>(
    _ driven: InterceptorUnderTest,
    _ method: MethodSpec<Message, Output>,
    _ setup: DriverSetup
  ) where Response == ResponseMessage<Output> {
    driven.tell(method.info)
    var form = driven.interceptor.asyncUnaryForm
    if case .bytes = form { form = nil }
    self.init(driven, setup, isBytes: false, method, form) { driven.interceptor.unaryMessageFunction(method) }
  }

  /// The byte hooks, or the async form.
  convenience init(_ driven: InterceptorUnderTest, _ setup: DriverSetup)
  where Message == ByteBuffer, Response == HTTPResponse {
    var form = driven.interceptor.asyncUnaryForm
    if case .messages = form { form = nil }
    let method = MethodSpec<ByteBuffer, ByteBuffer>.driver(.unary)
    self.init(driven, setup, isBytes: true, method, form) { driven.interceptor.unaryFunction() }
  }

  /// Begins a call: gives the request hook a request. A call that an earlier request has begun ends.
  public func request(_ request: Request) -> RequestVisit {
    self.session.visit("request") { $0.request(request, $1) }
  }

  /// Gives the response hook a response, or an error in one, once the request has passed the request hook.
  public func response(_ response: Response) -> ResponseVisit {
    self.session.visit("response") { $0.result(response, $1) }
  }

  /// Gives the metrics hook metrics. Message hooks and the async form see none, and pass them on.
  public func metrics(_ metrics: HTTPMetrics) -> HookVisit<HTTPMetrics> {
    self.session.visit("metrics") { $0.metrics(metrics, $1) }
  }
}
