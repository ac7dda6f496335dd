internal import Connect
internal import ConnectTesting

/// Lets so many calls run at once.
///
/// The bug: a call that was cancelled in the queue gets its turn all the same, and nobody gives it back.
final class LostPermit: Interceptor {
  private let limit: CallLimit
  private var hasPermit = false

  init(limit: CallLimit) {
    self.limit = limit
  }

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      requestFunction: { request, proceed in
        proceed.task {
          await self.limit.acquire()
          self.hasPermit = true
          proceed(.success(request))
        }
      },
      responseFunction: { response, proceed in
        if self.hasPermit { self.limit.release() }
        self.hasPermit = false
        proceed(response)
      }
    )
  }
}

extension ExplorationCase {
  static let lostPermit = ExplorationCase(
    "LostPermit",
    source: "Netflix/concurrency-limits#109",
    breaking: ["each call ends", "instances are released"],
    InterceptorExplorer { _ in
      let limit = CallLimit(1)
      return Subject { _ in LostPermit(limit: limit) }
    }
    .calls(3)
  )
}
