package import Connect

/// What the channels to one origin have in common, each of which lives on an executor of its own: one watch of the resolver, and
/// one judgement of endpoints that fail.
package final class SharedOrigin: Sendable {
  let resolver: SharedResolver
  let outliers: SharedOutliers
  /// For choices that all of them should make alike, such as a random subset.
  let seed: UInt64

  /// - Parameter executor: Where endpoints are judged.
  package init(resolver: any NameResolver, on executor: any CallExecutor, seed: UInt64) {
    self.seed = seed
    self.resolver = SharedResolver(resolver)
    self.outliers = SharedOutliers(on: executor, seed: seed)
  }
}
