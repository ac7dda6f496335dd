internal import Connect
internal import ConnectTesting

/// Spares a server that fails.
///
/// The bug: a call that its caller cancels is taken for a failure of the server.
final class TouchyBreaker: Interceptor {
  private let isMended: Bool
  private let circuit: SimpleCircuit

  init(isMended: Bool, circuit: SimpleCircuit) {
    self.isMended = isMended
    self.circuit = circuit
  }

  func callFunction(_ method: MethodInfo) -> CallFunction {
    var isAdmitted = false
    return CallFunction(
      requestFunction: { [circuit] _ in
        guard circuit.admit() else {
          throw ConnectError(code: .unavailable, message: "the circuit is open")
        }
        isAdmitted = true
      },
      endFunction: { [circuit, isMended] outcome in
        guard isAdmitted else { return }
        if outcome.error == nil {
          circuit.close()
        } else if !isMended || outcome.code != .canceled || circuit.isHalfOpen {
          circuit.open()
        }
      }
    )
  }
}

extension ExplorationCase {
  static let touchyBreaker = ExplorationCase(
    "TouchyBreaker",
    source: "resilience4j/resilience4j#682",
    breaking: ["the circuit opens for a reason"]
  ) { isMended in
    InterceptorExplorer { world in
      let circuit = SimpleCircuit(clock: world.clock)
      return Subject { _ in TouchyBreaker(isMended: isMended, circuit: circuit) }
    }
    .calls(3)
    .server(.answers(.ok, .unavailable))
    .neighbours(false)
    .allowing(.failure)
    .check("the circuit opens for a reason") { run in
      let isRefused = run.calls.map { $0.error?.message == "the circuit is open" }
      let hasFailed = zip(run.calls, isRefused).contains { call, isRefused in
        !isRefused && (call.code == .unavailable || call.code == .deadlineExceeded)
      }
      return hasFailed || !isRefused.contains(true)
    }
  }
}
