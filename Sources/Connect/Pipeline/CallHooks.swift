/// The interceptors of a call, outermost first, and their call hooks once they were asked for them.
struct CallHooks {
  private(set) var interceptors: [ResolvedInterceptor]
  private let inheritance: Inheritance?
  /// Among how many of them, from the outermost on, are those whose hooks wait for the outcome.
  private var waitingCount = 0
  /// Whether one of them wants to be told when the call is over.
  private(set) var hasEndHooks = false
  /// Whether one of them has something to do with the request or its outcome.
  private(set) var isTransparent = true

  init(_ interceptors: consuming [ResolvedInterceptor], _ inheritance: Inheritance?) {
    self.interceptors = interceptors
    self.inheritance = inheritance
  }

  var isEmpty: Bool { self.interceptors.isEmpty }

  /// Whether there are hooks that are to be told of the outcome.
  var areWaiting: Bool { self.waitingCount > 0 }

  /// Takes the hooks of the interceptor at `index`.
  mutating func set(_ function: consuming CallFunction, _ index: Int) {
    if function.endFunction != nil { self.hasEndHooks = true }
    if !function.isTransparent { self.isTransparent = false }
    if !function.isEmpty { self.interceptors[index].function = consume function }
  }

  /// The hook at `index` has passed the request on, or there is none.
  mutating func hasPassedDown(_ index: Int) {
    if self.interceptors[index].function.outcomeFunction != nil { self.waitingCount = index + 1 }
  }

  /// Lets the hook at `index` see and change the request, if there is one.
  func passDown(_ request: inout HTTPRequest<Void>, _ index: Int) throws {
    guard let function = self.interceptors[index].function.requestFunction else { return }
    let given = request.head.callPart
    let interceptor = self.interceptors[index].interceptor
    try self.inheritance.bind(given.context, of: type(of: interceptor)) { try function(&request) }
    request.complete(from: given)
  }

  /// Those that wait for the outcome, which they are to be told once.
  mutating func takeWaiting() -> CallHooks {
    let hooks = self
    self.waitingCount = 0
    return hooks
  }

  /// Tells those that wait for it of the outcome, which they may change, the innermost first.
  ///
  /// - Returns: Whether one has changed it.
  @discardableResult
  func passUp(_ outcome: inout CallOutcome) -> Bool {
    var isChanged = false
    for index in (0..<self.waitingCount).reversed() {
      guard let function = self.interceptors[index].function.outcomeFunction else { continue }
      let given = outcome
      let interceptor = self.interceptors[index].interceptor
      self.inheritance.bind(nil, of: type(of: interceptor)) { function(&outcome) }
      if !outcome.isUnchanged(since: given) {
        isChanged = true
        outcome.complete(from: given)
      }
    }
    return isChanged
  }

  /// Tells them that the call is over, the innermost first.
  func end(_ outcome: CallOutcome) {
    for index in self.interceptors.indices.reversed() {
      guard let function = self.interceptors[index].function.endFunction else { continue }
      let interceptor = self.interceptors[index].interceptor
      self.inheritance.bind(nil, of: type(of: interceptor)) { function(outcome) }
    }
  }

  /// Lets go of the interceptors.
  ///
  /// - Returns: What was let go, to be released where users' code may run.
  mutating func release() -> [ResolvedInterceptor] {
    let interceptors = self.interceptors
    self.interceptors = []
    self.waitingCount = 0
    return interceptors
  }
}
