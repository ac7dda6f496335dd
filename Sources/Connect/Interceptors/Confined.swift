/// A value that is made and used on a call's executor only, for closures that have to be `Sendable` on their way there.
///
/// `@unchecked Sendable` for that reason: it is made on the executor, which debug builds check where users make it, and
/// ``Call/hop(_:)`` and ``Proceed/task(_:)`` run the closure there.
package struct Confined<Value>: @unchecked Sendable {
  package let value: Value

  package init(_ value: Value) {
    self.value = value
  }
}
