internal import Connect
internal import ConnectTesting

/// Spares a server that is unavailable. A probe without a verdict leaves the circuit open.
final class HealingBreaker: Interceptor {
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
        default: if self.circuit.isHalfOpen { self.circuit.open() }
        }
      }
    )
  }
}

extension ExplorationCase {
  static let healingBreaker = ExplorationCase(
    "HealingBreaker",
    InterceptorExplorer { world in
      let circuit = SimpleCircuit(clock: world.clock)
      return Subject(observing: circuit) { _ in HealingBreaker(circuit: circuit) }
    }
    .calls(4)
    .methods([.unary, .serverStream])
    .server(.answers(.ok, .unavailable, .permissionDenied))
    .allowing(.failure)
    .check("no probe is left") { run in
      run.calls.contains { $0.endTime == nil } || !run.subject.isHalfOpen
    }
  )
}
