internal import Connect
internal import ConnectTesting

/// Repeats a call that the server was too busy for, twice at most, if there is time for it.
struct PatientRetry: AsyncUnaryInterceptor {
  let clock: any Clock<Duration>

  func interceptUnary<Input: Sendable, Output: Sendable>(
    _ request: HTTPRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: UnaryNext<Input, Output>
  ) async throws -> ResponseMessage<Output> {
    let stopwatch = Stopwatch(self.clock)
    var response = try await next(request)
    var delay = Duration.seconds(1)
    for _ in 0..<2 where response.code == .unavailable {
      if let timeout = request.timeout, stopwatch.elapsed + delay >= timeout { break }
      try await self.clock.sleep(for: delay)
      response = try await next(request)
      delay *= 2
    }
    return response
  }
}

extension ExplorationCase {
  static let patientRetry = ExplorationCase(
    "PatientRetry",
    InterceptorExplorer { world in Subject { _ in PatientRetry(clock: world.clock) } }
      .calls(2)
      .server(.answers(.ok, .unavailable, .permissionDenied))
      .neighbours(false)
      .check("three attempts at most") { run in run.calls.allSatisfy { $0.attempts.count <= 3 } }
  )
}
