internal import Connect
internal import NIOCore

/// The calls of an endpoint, as far as its balancer wants to know of them. Confined to the channel's executor.
final class EndpointCalls {
  private let id: EndpointID
  private let loads: EndpointLoads
  private let executor: any CallExecutor
  /// Whether the server reports its load with each call, rather than on a separate stream.
  @exclusivity(unchecked) var takesReports = true
  private(set) var failedCount = 0
  /// Since the last judgement of ``SharedOutliers``.
  @exclusivity(unchecked) var outcomes = CallOutcomes()

  init(of id: EndpointID, in loads: EndpointLoads, on executor: any CallExecutor) {
    self.id = id
    self.loads = loads
    self.executor = executor
  }

  func begin() { self.loads.callBegan(self.id) }

  /// A call that has begun is over.
  ///
  /// - Parameter isSuccess: Nil if the call was given up, which says nothing of the server.
  func end(isSuccess: Bool?) {
    switch isSuccess {
    case true?: self.outcomes.successes += 1
    case false?:
      self.outcomes.failures += 1
      self.failedCount += 1
    case nil: break
    }
    self.loads.callEnded(self.id)
  }

  /// A response may carry a load report (ORCA, gRFC A51).
  func takeReport(of metadata: Headers, named name: String) {
    guard let value = metadata.first(name), let bytes = Base64.decode(value),
      let report = LoadReport(decoding: Array(bytes.readableBytesView))
    else { return }
    self.record(report)
  }

  func record(_ report: LoadReport) {
    self.loads.record(report, of: self.id, now: self.executor.now)
  }
}
