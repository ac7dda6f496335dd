internal import Connect
internal import ConnectTesting

/// Repeats a call while the server is unavailable, with a backoff that grows.
///
/// The bug: it waits on after the deadline has passed.
final class BlindBackoff: Interceptor {
  private let clock: any Clock<Duration>
  private var attempts = 0

  init(clock: any Clock<Duration>) {
    self.clock = clock
  }

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      requestFunction: { request, proceed in
        self.attempts += 1
        proceed(.success(request))
      },
      responseFunction: { response, proceed in
        guard response.code == .unavailable, self.attempts < 3 else { return proceed(response) }
        let delay = Duration.seconds(20 * self.attempts)
        proceed.task {
          try? await self.clock.sleep(for: delay)
          proceed.retry()
        }
      }
    )
  }
}

extension ExplorationCase {
  static let blindBackoff = ExplorationCase(
    "BlindBackoff",
    source: "icerpc/icerpc-csharp#2098",
    breaking: ["nothing after the end", "no wait beyond the deadline"],
    InterceptorExplorer { world in Subject { _ in BlindBackoff(clock: world.clock) } }
      .server(.answers(.ok, .unavailable))
  )
}
