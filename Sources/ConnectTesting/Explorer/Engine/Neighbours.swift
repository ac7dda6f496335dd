internal import Connect
internal import NIOCore

/// What another interceptor of the chain does to a call, once.
enum Neighbour: Sendable, Hashable, CustomStringConvertible {
  case none
  /// The interceptor outside repeats the call when its first response is an error.
  case outerRetry
  /// The interceptor inside repeats the request, at the level of messages, when its first response is an error.
  case innerRetry
  /// The same at the level of bytes.
  case innerByteRetry
  /// The interceptor inside fails the first request.
  case innerFailure
  /// The interceptor inside holds the request for a second.
  case innerDelay
  /// The interceptor inside holds the headers of a stream until its first message.
  case heldHeaders

  static func possible(for method: StreamType) -> [Neighbour] {
    let all: [Neighbour] = [.none, .outerRetry, .innerRetry, .innerByteRetry, .innerFailure, .innerDelay]
    return method == .unary ? all : all + [.heldHeaders]
  }

  var description: String {
    switch self {
    case .none: "none"
    case .outerRetry: "a retry outside"
    case .innerRetry, .innerByteRetry: "a retry inside"
    case .innerFailure: "a failure inside"
    case .innerDelay: "a delay inside"
    case .heldHeaders: "held headers"
    }
  }
}

/// The explorer's interceptors around those under test: one outside and one inside. They tell what passes, and do what the run
/// has chosen.
///
/// Confined to the thread of the exploration: hooks run there.
final class NeighbourInterceptor: Interceptor {
  private let run: ExplorerRun
  private let isOuter: Bool
  private let neighbour: Neighbour
  private let number: Int
  /// It does what it does once.
  private var isDone = false

  /// - Parameter number: The call's.
  init(_ run: ExplorerRun, isOuter: Bool, number: Int) {
    self.run = run
    self.isOuter = isOuter
    self.number = number
    let callers = run.callers.callers
    self.neighbour = callers.indices.contains(number - 1) ? callers[number - 1].neighbour : .none
  }

  private func tell(_ kind: StaticString, _ text: @autoclosure () -> String) {
    self.run.log.tell(kind, self.number, text())
  }

  /// Whether it does what it does now.
  private func takes(_ kinds: Neighbour...) -> Bool {
    guard !self.isDone, kinds.contains(self.neighbour) else { return false }
    self.isDone = true
    return true
  }

  private func isRetryable(_ code: Code) -> Bool {
    code != .ok && code != .canceled && code != .deadlineExceeded
  }

  private static let failure = ConnectError(
    code: .unavailable,
    message: "another interceptor failed the request"
  )

  /// A request at the innermost place.
  private func handle<Request: Sendable, Response>(
    _ request: Request,
    _ proceed: Proceed<RequestVerb<Request, Response>>
  ) {
    if self.takes(.innerFailure) {
      self.tell("inner failure", "an interceptor inside fails the request of call \(self.number)")
      self.run.callers.neighbourFailed(self.number)
      proceed(.failure(Self.failure))
    } else if self.takes(.innerDelay) {
      self.tell("inner delay", "an interceptor inside holds the request of call \(self.number) for 1 s")
      let here = Confined(self.run)
      _ = self.run.executor.schedule(after: .seconds(1)) {
        // The call may be over by now, which is not the fault of what is explored.
        here.value.rules.isPaused = true
        proceed(.success(request))
        here.value.rules.isPaused = false
      }
    } else {
      proceed(.success(request))
    }
  }

  // MARK: Unary

  func unaryMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> UnaryMessageFunction<Input, Output> {
    if self.isOuter {
      return UnaryMessageFunction(responseFunction: { response, proceed in
        self.tell(
          "outer response",
          "the response \(response.code.name) leaves the interceptors of call \(self.number)"
        )
        if self.isRetryable(response.code), self.takes(.outerRetry) {
          self.tell("outer retry", "an interceptor outside repeats call \(self.number)")
          proceed.retry()
        } else {
          proceed(response)
        }
      })
    }
    guard self.neighbour == .innerRetry else { return UnaryMessageFunction() }
    return UnaryMessageFunction(responseFunction: { response, proceed in
      if self.isRetryable(response.code), self.takes(.innerRetry) {
        self.tell("inner retry", "an interceptor inside repeats the request of call \(self.number)")
        proceed.retry()
      } else {
        proceed(response)
      }
    })
  }

  func unaryFunction() -> UnaryFunction {
    guard !self.isOuter, self.actsOnBytes else { return UnaryFunction() }
    return UnaryFunction(
      requestFunction: { request, proceed in self.handle(request, proceed) },
      responseFunction: { response, proceed in
        if self.isRetryable(response.code), self.takes(.innerByteRetry) {
          self.tell("inner retry", "an interceptor inside repeats the request of call \(self.number)")
          proceed.retry()
        } else {
          proceed(response)
        }
      }
    )
  }

  private var actsOnBytes: Bool {
    switch self.neighbour {
    case .innerByteRetry, .innerFailure, .innerDelay, .heldHeaders: true
    case .none, .outerRetry, .innerRetry: false
    }
  }

  // MARK: Streams

  func streamMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> StreamMessageFunction<Input, Output> {
    guard self.neighbour == (self.isOuter ? .outerRetry : .innerRetry) else { return StreamMessageFunction() }
    return StreamMessageFunction(streamResultFunction: { result, proceed in
      if case .complete(let code, _, _) = result, self.isRetryable(code), self.takes(self.neighbour) {
        self.tell("retry", "another interceptor repeats call \(self.number)")
        proceed.retry()
      } else {
        proceed(result)
      }
    })
  }

  func streamFunction() -> StreamFunction {
    guard !self.isOuter, self.actsOnBytes else { return StreamFunction() }
    var held: (() -> Void)?
    return StreamFunction(
      requestFunction: { request, proceed in self.handle(request, proceed) },
      streamResultFunction: { result, proceed in
        switch result {
        case .headers where self.takes(.heldHeaders):
          self.tell("held headers", "an interceptor inside holds the headers of call \(self.number)")
          held = { proceed(result) }
          return
        case .complete(let code, _, _) where self.isRetryable(code) && self.takes(.innerByteRetry):
          self.tell("inner retry", "an interceptor inside repeats the request of call \(self.number)")
          proceed.retry()
          return
        default: break
        }
        held?()
        held = nil
        proceed(result)
      }
    )
  }
}
