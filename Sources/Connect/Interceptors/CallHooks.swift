/// The call hooks of a call, outermost first, once it comes to its end.
///
/// `@unchecked Sendable`: made and used on the call's executor, also where the call is gone.
struct CallHooks: @unchecked Sendable {
  private let interceptors: ArraySlice<ResolvedInterceptor>
  private let inheritance: Inheritance?

  init(_ interceptors: ArraySlice<ResolvedInterceptor>, _ inheritance: Inheritance?) {
    self.interceptors = interceptors
    self.inheritance = inheritance
  }

  /// Tells them that the call is over, the innermost first.
  func end(_ outcome: CallOutcome) {
    for index in self.interceptors.indices.reversed() {
      guard let function = self.interceptors[index].function.endFunction else { continue }
      let interceptor = self.interceptors[index].interceptor
      self.inheritance.bind(nil, of: type(of: interceptor)) { function(outcome) }
    }
  }

  /// Tells those that wait for it of the outcome, which they may change, the innermost first.
  ///
  /// - Returns: Whether one has changed it.
  @discardableResult
  func pass(_ outcome: inout CallOutcome) -> Bool {
    var isChanged = false
    for index in self.interceptors.indices.reversed() {
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
}
