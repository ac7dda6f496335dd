/// The interceptors of a call, outermost first, and their call hooks once they were asked for them. Confined to the call's
/// executor.
final class CallHooks: InterceptorSource {
  fileprivate struct Hook {
    let function: CallFunction
    let interceptor: any Interceptor.Type
  }

  /// What a call lets go of, and who is to be told of its end.
  struct Released {
    fileprivate let interceptors: [any Interceptor]
    fileprivate let hooks: [Hook]
    fileprivate let inheritance: Inheritance?

    /// Tells the hooks that the call is over, the innermost first.
    func tell(_ outcome: CallOutcome) {
      for hook in self.hooks.reversed() {
        guard let function = hook.function.endFunction else { continue }
        self.inheritance.bind(nil, of: hook.interceptor) { function(outcome) }
      }
    }
  }

  private let method: MethodInfo
  private let inheritance: Inheritance?
  private var interceptors: [any Interceptor]
  /// Those of interceptors that have any.
  private var hooks: [Hook] = []
  /// Among how many hooks, from the outermost on, are those that wait for the outcome.
  private var waitingCount = 0
  private(set) var hasEndHooks = false
  /// Whether no hook has anything to do with the request or its outcome.
  private(set) var isTransparent = true
  /// Whether interceptors are, or were, asked for their hooks.
  private(set) var hasAsked = false
  private(set) var isAsking = false
  /// The outcome, if the call has ended while interceptors were asked.
  var outcomeInAsking: CallOutcome?
  /// Whether a hook has the request.
  private(set) var haveRequest = false

  init(_ interceptors: consuming [any Interceptor], of method: MethodInfo, _ inheritance: Inheritance?) {
    self.interceptors = interceptors
    self.method = method
    self.inheritance = inheritance
  }

  func haveAsyncForm(isUnary: Bool) -> Bool {
    self.interceptors.contains { isUnary ? $0.asyncUnaryForm != nil : $0.asyncStreamForm != nil }
  }

  // MARK: Asking

  /// Asks the interceptors for their hooks.
  ///
  /// - Parameter pipeline: Takes the hooks of stages; nil for a call that ends before it begins, which has call hooks alone.
  func ask(for pipeline: Pipeline?, of method: AnyMethod, _ host: any PipelineHost) {
    self.hasAsked = true
    self.isAsking = true
    if let pipeline {
      pipeline.askForHooks(self, of: method, host)
    } else {
      for index in 0..<self.count { _ = self.askForCallHooks(index) }
    }
    self.isAsking = false
  }

  var count: Int { self.interceptors.count }

  func askForCallHooks(_ index: Int) -> any Interceptor {
    let interceptor = self.interceptors[index]
    let function = interceptor.callFunction(self.method)
    if function.endFunction != nil { self.hasEndHooks = true }
    if !function.isTransparent { self.isTransparent = false }
    if !function.isEmpty {
      // Taken out, so that each access to the variable is over at once.
      var hooks = self.hooks
      self.hooks = []
      if hooks.isEmpty { hooks.reserveCapacity(self.interceptors.count) }
      hooks.append(Hook(function: function, interceptor: type(of: interceptor)))
      self.hooks = hooks
    }
    return interceptor
  }

  // MARK: The request and its outcome

  /// Lets hooks see and change the request.
  ///
  /// - Returns: Nil if a hook has ended the call.
  /// - Throws: What a hook throws.
  func passDown(_ head: consuming RequestHead, _ host: any PipelineHost) throws -> RequestHead? {
    // The one reference to the head: what hooks change, they change in place.
    var request = HTTPRequest(head: head)
    let hooks = self.hooks
    for index in hooks.indices {
      if let function = hooks[index].function.requestFunction {
        self.haveRequest = true
        let given = request.head.callPart
        try self.inheritance.bind(given.context, of: hooks[index].interceptor) { try function(&request) }
        request.complete(from: given)
        self.haveRequest = false
      }
      guard !host.isOver else { return nil }
      if hooks[index].function.outcomeFunction != nil { self.waitingCount = index + 1 }
    }
    return request.head
  }

  /// Whether there are hooks that are to be told of the outcome.
  var areWaiting: Bool { self.waitingCount > 0 }

  /// Tells the hooks that wait for it of the outcome, which they may change, the innermost first. They are told once.
  ///
  /// - Returns: Whether one has changed it.
  func passUp(_ outcome: inout CallOutcome) -> Bool {
    let hooks = self.hooks.prefix(self.waitingCount)
    self.waitingCount = 0
    var isChanged = false
    for hook in hooks.reversed() {
      guard let function = hook.function.outcomeFunction else { continue }
      let given = outcome
      self.inheritance.bind(nil, of: hook.interceptor) { function(&outcome) }
      if !outcome.isUnchanged(since: given) {
        isChanged = true
        outcome.complete(from: given)
      }
    }
    return isChanged
  }

  /// Lets go of the interceptors, to be released where users' code may run.
  func release() -> Released {
    let released = Released(interceptors: self.interceptors, hooks: self.hooks, inheritance: self.inheritance)
    self.interceptors = []
    self.hooks = []
    self.waitingCount = 0
    return released
  }
}
