/// A value of one call's executor, on its way through code that may run elsewhere, such as `Sendable` closures that only run
/// on the executor.
///
/// `@unchecked Sendable`: the value is read on the executor, which debug builds check where it is known. The one place of the
/// engine that says so.
package struct Confined<Value>: @unchecked Sendable {
  private let content: Value
  private let executor: (any CallExecutor)?

  /// - Parameter executor: Where the value lives; nil if whoever made this sees to it.
  package init(_ value: Value, to executor: (any CallExecutor)? = nil) {
    self.content = value
    self.executor = executor
  }

  package var value: Value {
    assert(self.executor?.isCurrent ?? true, "used outside of the call's executor")
    return self.content
  }
}
