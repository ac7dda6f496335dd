/// A watch of a resolver that is made of what its functions do.
final class ClosureWatch: ResolverWatch {
  private let onRequest: @Sendable () -> Void
  private let onCancel: @Sendable () -> Void

  init(onRequest: @escaping @Sendable () -> Void = {}, onCancel: @escaping @Sendable () -> Void = {}) {
    self.onRequest = onRequest
    self.onCancel = onCancel
  }

  func resolveAgain() { self.onRequest() }

  func cancel() { self.onCancel() }
}
