internal import Connect
internal import Synchronization

/// Who judges the endpoints of an origin, or of a cluster, the same for its channels on all executors: one judge for each part of a
/// tree of policies that has outlier detection.
final class OutlierJudges: Sendable {
  private let executor: any CallExecutor
  private let seed: UInt64
  /// Channels keep those that they need.
  private let judges = Mutex<[TreePlace: Weak<SharedOutliers>]>([:])

  /// - Parameter executor: Where endpoints are judged.
  init(on executor: any CallExecutor, seed: UInt64) {
    self.executor = executor
    self.seed = seed
  }

  /// The judge of a part.
  func judge(at place: TreePlace) -> SharedOutliers {
    self.judges.withLock { judges in
      if let known = judges[place]?.object { return known }
      judges = judges.filter { $0.value.object != nil }
      let judge = SharedOutliers(
        on: self.executor,
        seed: place.names.reduce(self.seed) { XXH64.hash($1, seed: $0) }
      )
      judges[place] = Weak(judge)
      return judge
    }
  }
}
