internal import Connect

/// The interceptor of a driver.
///
/// Confined to the driver's executor.
final class InterceptorUnderTest {
  let interceptor: any Interceptor
  private let executor: VirtualExecutor
  private var method: MethodInfo?
  private var callHooks: CallFunction?
  private var hasEnded = false
  /// What observes attempts; the interceptor is asked for it once.
  private lazy var attemptFunction = self.interceptor.attemptFunction()

  init(_ interceptor: any Interceptor, _ executor: VirtualExecutor) {
    self.interceptor = interceptor
    self.executor = executor
  }

  deinit {
    guard !self.hasEnded, let function = self.callHooks?.endFunction else { return }
    let end = Confined(function)
    self.executor.execute {
      end.value(CallOutcome(error: ConnectError(code: .canceled, message: "the driver was released")))
    }
  }

  var name: String { "\(type(of: self.interceptor))" }

  /// The call hooks; the interceptor is asked for them once.
  func callHooks(_ method: MethodInfo) -> CallFunction {
    if let hooks = self.callHooks { return hooks }
    let hooks = self.interceptor.callFunction(method)
    self.method = method
    self.callHooks = hooks
    return hooks
  }

  /// Tells the interceptor which method is called, as a call does before all else.
  func tell(_ method: MethodInfo) {
    _ = self.callHooks(method)
  }

  /// The request with its method. Tells the interceptor this method, if it has not been told any.
  func complete<Message>(_ request: HTTPRequest<Message>, _ streamType: StreamType) -> HTTPRequest<Message> {
    self.tell(request.method ?? MethodInfo(path: request.url.path, streamType: streamType))
    var request = request
    if request.method == nil { request.method = self.method }
    return request
  }

  /// Tells the interceptor of an attempt, if it observes any.
  func observe(_ event: AttemptEvent) { self.attemptFunction?(event) }

  func end(_ outcome: CallOutcome) {
    guard !self.hasEnded else { return }
    self.hasEnded = true
    self.callHooks?.endFunction?(outcome)
  }
}
