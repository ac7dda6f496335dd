internal import Connect

/// Repeats a call while the server is unavailable, with a backoff that grows.
///
/// The bug: it waits on after the deadline has passed.
final class BlindBackoff: Interceptor {
  private let clock: any Clock<Duration>
  private let waits: Counter
  private var attempts = 0

  init(clock: any Clock<Duration>, waits: Counter) {
    self.clock = clock
    self.waits = waits
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
          self.waits.add()
          try? await self.clock.sleep(for: delay)
          self.waits.add(-1)
          proceed.retry()
        }
      }
    )
  }
}
