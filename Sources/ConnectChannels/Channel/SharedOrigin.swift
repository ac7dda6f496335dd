package import Connect
internal import Synchronization

/// What the channels to one origin have in common, each of which lives on an executor of its own: one watch of the resolver, one
/// judgement of endpoints that fail, and one throttle of retries.
package final class SharedOrigin: Sendable {
  let resolver: SharedResolver
  let outliers: SharedOutliers
  /// For choices that all of them should make alike, such as a random subset.
  let seed: UInt64
  private let lastThrottle = Mutex<RetryThrottle?>(nil)

  /// - Parameter executor: Where endpoints are judged.
  package init(resolver: any NameResolver, on executor: any CallExecutor, seed: UInt64) {
    self.seed = seed
    self.resolver = SharedResolver(resolver)
    self.outliers = SharedOutliers(on: executor, seed: seed)
  }

  /// The throttle of the service config's retries, which stays as long as its numbers do; nil if there is none.
  func throttle(_ settings: ServiceConfig.RetryThrottling?) -> RetryThrottle? {
    self.lastThrottle.withLock { throttle in
      if throttle?.settings != settings { throttle = settings.map { RetryThrottle($0) } }
      return throttle
    }
  }
}
