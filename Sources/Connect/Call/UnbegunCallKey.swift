/// Hears of the error of a call that ends before its interceptors are resolved, on the call's executor.
package enum UnbegunCallKey: CallContextKey {
  package static var defaultValue: (@Sendable (ConnectError) -> Void)? { nil }
}
