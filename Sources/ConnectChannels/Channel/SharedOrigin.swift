package import Connect
internal import Synchronization

/// What the channels to one origin share, each on its own executor. They share one watch of the resolver, one judgement
/// of endpoints that fail, and one throttle of retries.
package final class SharedOrigin: Sendable {
  let resolver: SharedResolver
  let outliers: OutlierJudges
  /// For choices that all of them should make alike, such as a random subset.
  let seed: UInt64
  /// What keeps the clusters of the origin alive.
  package let clusters: ClusterHandles
  /// Of clusters, by name: of those that have channels. Swept when there are so many.
  private let outliersOfClusters = Mutex<(all: [String: Weak<OutlierJudges>], sweepCount: Int)>(([:], 64))
  /// Channels keep the budgets of the service configs that they follow.
  private let throttles = Mutex<[(settings: ServiceConfig.RetryThrottling, budget: Weak<RetryBudget>)]>([])

  /// - Parameters:
  ///   - executor: Where endpoints are judged.
  ///   - clusters: Those of the origin for other versions of HTTP; nil if there are none.
  package init(
    resolver: any NameResolver,
    on executor: any CallExecutor,
    seed: UInt64,
    clusters: ClusterHandles? = nil
  ) {
    self.seed = seed
    self.clusters = clusters ?? ClusterHandles()
    self.resolver = SharedResolver(resolver)
    self.outliers = OutlierJudges(on: executor, seed: seed)
  }

  private init(_ resolver: any NameResolver, _ outliers: OutlierJudges, seed: UInt64) {
    self.seed = seed
    self.clusters = ClusterHandles()
    self.resolver = SharedResolver(resolver)
    self.outliers = outliers
  }

  /// What the channels to a cluster of the origin share: the judgement of endpoints that fail.
  ///
  /// - Parameter resolver: Of one channel, which follows the routes of its own executor.
  func ofCluster(_ name: String, _ resolver: any NameResolver, on executor: any CallExecutor) -> SharedOrigin
  {
    let outliers = self.outliersOfClusters.withLock { state in
      if let known = state.all[name]?.object { return known }
      let outliers = OutlierJudges(on: executor, seed: self.seed)
      state.all[name] = Weak(outliers)
      if state.all.count >= state.sweepCount {
        state.all = state.all.filter { $0.value.object != nil }
        state.sweepCount = max(64, state.all.count * 2)
      }
      return outliers
    }
    return SharedOrigin(resolver, outliers, seed: self.seed)
  }

  /// The budget of the service config's retries, the same for all channels whose service config has the same numbers.
  func throttle(_ settings: ServiceConfig.RetryThrottling?) -> RetryBudget? {
    guard let settings else { return nil }
    return self.throttles.withLock { throttles in
      throttles.removeAll { $0.budget.object == nil }
      if let known = throttles.first(where: { $0.settings == settings })?.budget.object { return known }
      let maximum = Double(settings.maximumTokens)
      let budget = RetryBudget(maximumTokens: maximum, tokenRatio: settings.tokenRatio)
      throttles.append((settings, Weak(budget)))
      return budget
    }
  }
}
