internal import Synchronization

/// What the mocks of all kinds of streams have in common: the messages that were sent, and results for those who wait until
/// the first was.
///
/// `@unchecked Sendable`: its variables are behind the mutex. Closures of tests need not be `Sendable`; they run where the
/// stream is used, outside of the mutex.
final class MockStream<Input: ProtobufMessage, Output: ProtobufMessage>: @unchecked Sendable {
  typealias Results = [StreamResult<Output>]

  struct State {
    var onClose: (() -> Void)?
    var onSend: ((Input) -> Void)?
    var outputs: Results
    var inputs: [Input] = []
    var isClosed = false
    /// Who gets the outputs once a message was sent.
    fileprivate var waiting: [(Results) -> Void] = []
  }

  private let mutex: Mutex<UncheckedState>

  /// Lets closures into the mutex that are not `Sendable`.
  private struct UncheckedState: @unchecked Sendable {
    var state: State
  }

  init(outputs: Results) {
    self.mutex = Mutex(UncheckedState(state: State(outputs: outputs)))
  }

  func read<Value>(_ path: KeyPath<State, Value>) -> Value {
    self.withState { $0[keyPath: path] }
  }

  func write<Value>(_ path: WritableKeyPath<State, Value>, _ value: Value) {
    self.withState { $0[keyPath: path] = value }
  }

  private func withState<Value>(_ body: (inout State) -> Value) -> Value {
    self.mutex.withLock { Unchecked(value: body(&$0.state)) }.value
  }

  private struct Unchecked<Value>: @unchecked Sendable {
    let value: Value
  }

  func send(_ input: Input) {
    let onSend = self.withState { state in
      state.inputs.append(input)
      return state.onSend
    }
    onSend?(input)
    let (waiting, outputs) = self.withState { state in
      defer { state.waiting = [] }
      return (state.waiting, state.outputs)
    }
    for receive in waiting { receive(outputs) }
  }

  func close() {
    let onClose = self.withState { state in
      state.isClosed = true
      return state.onClose
    }
    onClose?()
  }

  /// Gives the outputs to `receive` once a message was sent; at once if that has happened.
  func whenSent(_ receive: @escaping (Results) -> Void) {
    let outputs: Results? = self.withState { state in
      guard state.inputs.isEmpty else { return state.outputs }
      state.waiting.append(receive)
      return nil
    }
    if let outputs { receive(outputs) }
  }

  /// A sequence of the outputs, once a message was sent.
  func results() -> AsyncStream<StreamResult<Output>> {
    AsyncStream { continuation in
      self.whenSent { outputs in
        for output in outputs { continuation.yield(output) }
        continuation.finish()
      }
    }
  }
}
