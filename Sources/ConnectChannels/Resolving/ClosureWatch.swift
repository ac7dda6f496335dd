/// A watch of a resolver that is made of what its functions do.
final class ClosureWatch: ResolverWatch {
  private let onRequest: @Sendable () -> Void
  private let onKeep: @Sendable (Set<String>) -> Void
  private let onCancel: @Sendable () -> Void

  init(
    onRequest: @escaping @Sendable () -> Void = {},
    onKeep: @escaping @Sendable (Set<String>) -> Void = { _ in },
    onCancel: @escaping @Sendable () -> Void = {}
  ) {
    self.onRequest = onRequest
    self.onKeep = onKeep
    self.onCancel = onCancel
  }

  func resolveAgain() { self.onRequest() }

  func keepClusters(_ names: Set<String>) { self.onKeep(names) }

  func cancel() { self.onCancel() }
}
