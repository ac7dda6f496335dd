/// The call hooks of a call that wait for its outcome, outermost first.
///
/// `@unchecked Sendable`: made and used on the call's executor, also where the call is gone.
struct CallHooks: @unchecked Sendable {
  private let functions: ArraySlice<CallFunction>
  private let inheritance: Inheritance?

  init(_ functions: ArraySlice<CallFunction>, _ inheritance: Inheritance?) {
    self.functions = functions
    self.inheritance = inheritance
  }

  /// Tells them of the outcome, which they may change, the innermost first.
  func pass(_ outcome: inout CallOutcome) {
    for index in stride(from: self.functions.endIndex - 1, through: self.functions.startIndex, by: -1) {
      guard let function = self.functions[index].outcomeFunction else { continue }
      let given = outcome
      if let inheritance = self.inheritance {
        inheritance.bind(nil) { function(&outcome) }
      } else {
        function(&outcome)
      }
      if !outcome.isIdentical(to: given) { outcome.complete(from: given) }
    }
  }
}
