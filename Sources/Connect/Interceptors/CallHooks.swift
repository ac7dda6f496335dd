/// The call hooks of a call that wait for its outcome, outermost first.
///
/// `@unchecked Sendable`: made and used on the call's executor, also where the call is gone.
struct CallHooks: @unchecked Sendable {
  private let interceptors: ArraySlice<CallInterceptor>
  private let inheritance: Inheritance?

  init(_ interceptors: ArraySlice<CallInterceptor>, _ inheritance: Inheritance?) {
    self.interceptors = interceptors
    self.inheritance = inheritance
  }

  /// Tells them of the outcome, which they may change, the innermost first.
  func pass(_ outcome: inout CallOutcome) {
    for index in self.interceptors.indices.reversed() {
      guard let function = self.interceptors[index].function.outcomeFunction else { continue }
      let given = outcome
      if let inheritance = self.inheritance {
        inheritance.bind(nil) { function(&outcome) }
      } else {
        function(&outcome)
      }
      if outcome.isChanged { outcome.complete(from: given) }
    }
  }
}

/// An interceptor of a call, and its call hooks once it was asked for them.
struct CallInterceptor {
  let interceptor: any Interceptor
  var function = CallFunction()
}
