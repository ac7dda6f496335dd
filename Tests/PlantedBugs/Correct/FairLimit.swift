internal import Connect
internal import ConnectTesting

/// Lets so many calls run at once, and gives each permit back.
final class FairLimit: Interceptor {
  private let limit: CallLimit
  private var hasPermit = false
  private var isOver = false

  init(limit: CallLimit) {
    self.limit = limit
  }

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(requestFunction: { request, proceed in
      // A later attempt of the call has the permit.
      guard !self.hasPermit else { return proceed(.success(request)) }
      proceed.task {
        await self.limit.acquire()
        guard !self.isOver else { return self.limit.release() }
        self.hasPermit = true
        proceed(.success(request))
      }
    })
  }

  func callFunction(_ method: MethodInfo) -> CallFunction {
    CallFunction(endFunction: { _ in
      self.isOver = true
      if self.hasPermit { self.limit.release() }
    })
  }
}

extension ExplorationCase {
  static let fairLimit = ExplorationCase(
    "FairLimit",
    InterceptorExplorer { _ in
      let limit = CallLimit(1)
      return Subject(observing: limit) { _ in FairLimit(limit: limit) }
    }
    .calls(3)
    .check("the permit is back") { run in run.calls.contains { $0.endTime == nil } || run.subject.free == 1 }
  )
}
