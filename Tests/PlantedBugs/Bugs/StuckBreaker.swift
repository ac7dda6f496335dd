internal import Connect
internal import ConnectTesting
internal import Synchronization

/// Whether calls may go to the server.
final class SimpleCircuit: Sendable {
  enum State: Sendable, Equatable {
    case closed
    case open(since: Duration)
    case halfOpen
  }

  private let stopwatch: Stopwatch
  private let current = Mutex(State.closed)

  init(clock: any Clock<Duration>) {
    self.stopwatch = Stopwatch(clock)
  }

  /// Whether a probe is under way.
  var isHalfOpen: Bool { self.current.withLock { $0 == .halfOpen } }

  /// Whether a call may go. After a pause one call may, which is the probe.
  func admit() -> Bool {
    let now = self.stopwatch.elapsed
    return self.current.withLock { state in
      switch state {
      case .closed: return true
      case .halfOpen: return false
      case .open(let since):
        guard now - since >= .seconds(5) else { return false }
        state = .halfOpen
        return true
      }
    }
  }

  func close() { self.current.withLock { $0 = .closed } }

  func open() {
    let now = self.stopwatch.elapsed
    self.current.withLock { $0 = .open(since: now) }
  }
}

/// Spares a server that is unavailable.
///
/// The bug: a probe that is cancelled, or that the server refuses, neither closes nor opens the circuit.
final class StuckBreaker: Interceptor {
  private let circuit: SimpleCircuit
  private var isAdmitted = false

  init(circuit: SimpleCircuit) {
    self.circuit = circuit
  }

  func callFunction(_ method: MethodInfo) -> CallFunction {
    CallFunction(
      requestFunction: { _ in
        guard self.circuit.admit() else {
          throw ConnectError(code: .unavailable, message: "the circuit is open")
        }
        self.isAdmitted = true
      },
      endFunction: { outcome in
        guard self.isAdmitted else { return }
        switch outcome.code {
        case .ok: self.circuit.close()
        case .unavailable, .deadlineExceeded: self.circuit.open()
        default: break
        }
      }
    )
  }
}

extension ExplorationCase {
  static let stuckBreaker = ExplorationCase(
    "StuckBreaker",
    source: "getnora-io/nora#607",
    breaking: ["no probe is left"],
    InterceptorExplorer { world in
      let circuit = SimpleCircuit(clock: world.clock)
      return Subject(observing: circuit) { _ in StuckBreaker(circuit: circuit) }
    }
    .calls(4)
    .server(.answers(.ok, .unavailable, .permissionDenied))
    .allowing(.failure)
    .check("no probe is left") { run in !run.subject.isHalfOpen }
  )
}
