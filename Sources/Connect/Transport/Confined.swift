/// A value confined to one call's executor. It passes through code that may run elsewhere, for example into `Sendable`
/// closures that only run on the executor.
///
/// `@unchecked Sendable`: the value is read on the executor, which debug builds check where it is known.
package struct Confined<Value>: @unchecked Sendable {
  private let content: Value
  private let executor: (any CallExecutor)?

  /// - Parameter executor: The executor of the value; nil if the creator of this ensures the confinement.
  package init(_ value: Value, to executor: (any CallExecutor)? = nil) {
    self.content = value
    self.executor = executor
  }

  package var value: Value {
    assert(self.executor?.isCurrent ?? true, "used outside of the call's executor")
    return self.content
  }
}
