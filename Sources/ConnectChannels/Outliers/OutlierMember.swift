internal import Connect

/// A channel whose endpoints ``SharedOutliers`` judges. All functions are called on its executor.
protocol OutlierMember: AnyObject, Sendable {
  var executor: any CallExecutor { get }

  /// The outcomes of the calls that have ended since the last time, for endpoints that had any.
  func takeOutcomes() -> [(endpoint: Endpoint.Identity, outcomes: CallOutcomes)]

  /// Calls are kept away from these endpoints, and from no others.
  func setEjected(_ endpoints: Set<Endpoint.Identity>)
}

/// How many calls have succeeded, and how many have failed.
struct CallOutcomes: Sendable, Equatable {
  var successes = 0
  var failures = 0

  var isEmpty: Bool { self.successes == 0 && self.failures == 0 }
}
