internal import Connect
internal import ConnectTesting

/// Counts the calls that are under way.
///
/// The bug: a call that ends without a response stays in the count.
struct LeakedGauge: AsyncUnaryInterceptor {
  let isMended: Bool
  let inFlight: Counter

  func interceptUnary<Input: Sendable, Output: Sendable>(
    _ request: HTTPRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: UnaryNext<Input, Output>
  ) async throws -> ResponseMessage<Output> {
    self.inFlight.add()
    defer { if self.isMended { self.inFlight.add(-1) } }
    let response = try await next(request)
    if !self.isMended { self.inFlight.add(-1) }
    return response
  }
}

extension ExplorationCase {
  static let leakedGauge = ExplorationCase(
    "LeakedGauge",
    source: "MystenLabs/sui#27581",
    breaking: ["nothing is under way at the end"]
  ) { isMended in
    InterceptorExplorer { _ in
      let inFlight = Counter()
      return Subject(observing: inFlight) { _ in LeakedGauge(isMended: isMended, inFlight: inFlight) }
    }
    .calls(2)
    .check("nothing is under way at the end") { run in run.subject.value == 0 }
  }
}
