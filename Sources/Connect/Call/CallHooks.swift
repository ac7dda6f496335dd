/// The interceptors of a call, outermost first, with their call hooks once they are known. Confined to the call's
/// executor.
final class CallHooks {
  /// An interceptor, with its call hooks once they are known.
  struct Entry {
    let interceptor: any Interceptor
    fileprivate var function = CallFunction()

    init(_ interceptor: consuming any Interceptor) {
      self.interceptor = interceptor
    }

    /// Whether the interceptor is left out.
    var isNone: Bool { self.interceptor.isNone }
  }

  /// The interceptors that a call has released, which are to be told of its end.
  struct Released {
    fileprivate let entries: [Entry]
    fileprivate let inheritance: Inheritance?

    /// Tells the hooks that the call is over, the innermost first.
    func tell(_ outcome: CallOutcome) {
      // By index, here and below: a loop over the elements would copy each of them.
      for index in self.entries.indices.reversed() {
        guard let function = self.entries[index].function.endFunction else { continue }
        self.inheritance.bind(nil, of: type(of: self.entries[index].interceptor)) { function(outcome) }
      }
    }
  }

  private let method: MethodInfo
  private let inheritance: Inheritance?
  private var entries: [Entry]
  /// All interceptors that wait for the outcome are among this many, from the outermost on.
  private var waitingCount = 0
  private(set) var hasEndHooks = false
  /// Whether a hook can ask for a retry.
  private var mayRetry = false
  /// The id of the request as the hooks have passed it on, if one of them can ask for a retry.
  private(set) var requestID: String?
  /// Whether the retry that the innermost waiting hook has asked for was refused.
  private var wasRefused = false
  /// Whether no hook has anything to do with the request or its outcome.
  private(set) var isTransparent = true
  /// Whether interceptors are, or were, asked for their hooks.
  private(set) var hasAsked = false
  private(set) var isAsking = false
  /// What has ended the call while hooks were being told of another outcome, which one of them then wants to retry.
  var interruption: ConnectError?
  /// The outcome, if the call has ended while interceptors were asked.
  var outcomeInAsking: CallOutcome?
  /// Whether a hook has the request.
  private(set) var haveRequest = false

  init(_ interceptors: consuming [Entry], of method: MethodInfo, _ inheritance: Inheritance?) {
    self.entries = interceptors
    self.method = method
    self.inheritance = inheritance
  }

  func haveAsyncForm(isUnary: Bool) -> Bool {
    self.entries.contains {
      isUnary ? $0.interceptor.asyncUnaryForm != nil : $0.interceptor.asyncStreamForm != nil
    }
  }

  /// Whether one of the interceptors follows the service's retry rules.
  var followRetryRules: Bool { self.entries.contains { $0.interceptor is any RetryRulesFollowing } }

  // MARK: Asking

  /// Asks the interceptors for their hooks. If that ends the call, tells and releases them.
  ///
  /// - Parameter pipeline: Takes the hooks of stages; nil for a call that ends before it begins, which has call hooks alone.
  func ask(for pipeline: Pipeline?, of method: AnyMethod, _ attempts: Attempts) {
    self.hasAsked = true
    self.isAsking = true
    if let pipeline {
      pipeline.askForHooks(self, of: method, attempts)
    } else {
      for index in 0..<self.count { _ = self.askForCallHooks(index) }
    }
    self.isAsking = false
    if let outcome = self.outcomeInAsking.take() {
      self.release().tell(outcome)
    } else {
      attempts.keepsSummary = self.hasEndHooks || !self.isTransparent
      if self.mayRetry { pipeline?.callHooksMayRetry = true }
    }
  }

  var count: Int { self.entries.count }

  var isOver: Bool { self.outcomeInAsking != nil }

  func askForCallHooks(_ index: Int) -> any Interceptor {
    let interceptor = self.entries[index].interceptor
    let function = interceptor.callFunction(self.method)
    if !function.isEmpty { self.keep(consume function, at: index) }
    return interceptor
  }

  private func keep(_ function: consuming CallFunction, at index: Int) {
    if function.endFunction != nil { self.hasEndHooks = true }
    if function.retryFunction != nil { self.mayRetry = true }
    if !function.isTransparent { self.isTransparent = false }
    // Moved out and back, so that each exclusive access to the variable ends at once.
    var entries: [Entry] = []
    swap(&entries, &self.entries)
    entries[index].function = function
    self.entries = entries
  }

  // MARK: The request and its outcome

  /// Lets hooks see and change the request.
  ///
  /// - Returns: Nil if a hook has ended the call.
  func passDown(_ head: consuming RequestHead, _ call: Call) -> RequestHead? {
    guard !self.isTransparent else { return head }
    do {
      return try self.changed(head, call)
    } catch {
      guard !call.isOver else { return nil }
      var error = ConnectError(error)
      error.isUnsent = true
      // Hooks of stages may wait from an earlier start.
      if call.pipeline.hasStarted {
        Termination(error: error, plan: call.plan).tell(call.pipeline, isFinal: false)
        guard !call.isOver else { return nil }
      }
      call.finish(with: call.side.end(of: error))
      return nil
    }
  }

  private func changed(_ head: consuming RequestHead, _ call: Call) throws -> RequestHead? {
    // The only reference to the head, so that hooks change it in place.
    var request = HTTPRequest(head: head)
    let entries = self.entries
    self.wasRefused = false
    defer { self.haveRequest = false }
    for index in entries.indices {
      if let function = entries[index].function.requestFunction {
        self.haveRequest = true
        let context = self.inheritance == nil ? nil : request.head.context
        try self.inheritance.bind(context, of: type(of: entries[index].interceptor)) {
          try request.change(by: function)
        }
        self.haveRequest = false
        guard !call.isOver else { return nil }
      }
      // More may wait, from an earlier start.
      if entries[index].function.seesOutcome, self.waitingCount <= index { self.waitingCount = index + 1 }
    }
    if self.mayRetry { self.requestID = request.context.requestID }
    return request.head
  }

  /// Whether there are hooks that are to be told of the outcome.
  var areWaiting: Bool { self.waitingCount > 0 }

  /// Tells the waiting hooks of the outcome once, the innermost first. They may change it.
  ///
  /// - Returns: The retry that a hook asks for. If it is refused, call this function again.
  @discardableResult
  func passUp(_ outcome: inout CallOutcome, mayRetry: Bool = false) -> RetryRequest? {
    let entries = self.entries
    while self.waitingCount > 0 {
      let index = self.waitingCount - 1
      if mayRetry, let retry = self.retry(entries[index], after: outcome) { return retry }
      self.waitingCount = index
      guard let function = entries[index].function.outcomeFunction else { continue }
      self.inheritance.bind(nil, of: type(of: entries[index].interceptor)) { outcome.change(by: function) }
    }
    return nil
  }

  private func retry(_ entry: Entry, after outcome: CallOutcome) -> RetryRequest? {
    guard let function = entry.function.retryFunction, !self.wasRefused else {
      self.wasRefused = false
      return nil
    }
    let retry = self.inheritance.bind(nil, of: type(of: entry.interceptor)) { function(outcome) }
    self.wasRefused = retry != nil
    return retry
  }

  /// Returns the interceptors, to be released where user code may run.
  func release() -> Released {
    let released = Released(entries: self.entries, inheritance: self.inheritance)
    self.entries = []
    self.waitingCount = 0
    return released
  }
}

extension Interceptor {
  fileprivate var isNone: Bool { Self.self == NoInterceptor.self }
}
