internal import Connect

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
        guard self.circuit.admit() else { throw ConnectError(code: .unavailable, message: "the circuit is open") }
        self.isAdmitted = true
      },
      endFunction: { outcome in
        guard self.isAdmitted else { return }
        switch outcome.code {
        case .ok: self.circuit.close()
        case .unavailable, .deadlineExceeded: self.circuit.open()
        default: if self.circuit.state == .halfOpen { self.circuit.open() }
        }
      }
    )
  }
}
