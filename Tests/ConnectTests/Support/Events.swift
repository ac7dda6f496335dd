import Connect
import Synchronization

/// Recorded events, in order. May be written from any thread.
final class Events: Sendable {
  private let log = Mutex<[String]>([])

  func add(_ event: String) { self.log.withLock { $0.append(event) } }

  var all: [String] { self.log.withLock { $0 } }

  func count(_ event: String) -> Int { self.all.count { $0 == event } }
}

/// A value that may be set and read from any thread.
final class Box<Value: Sendable>: Sendable {
  private let state: Mutex<Value>

  init(_ value: Value) { self.state = Mutex(value) }

  var value: Value {
    get { self.state.withLock { $0 } }
    set { self.state.withLock { $0 = newValue } }
  }

  /// Sets a new value and returns the old one.
  func exchange(_ value: Value) -> Value {
    self.state.withLock { state in
      defer { state = value }
      return state
    }
  }
}

extension Box where Value == Int {
  /// Increments the value and returns the new value.
  func increment() -> Int {
    self.state.withLock { state in
      state += 1
      return state
    }
  }
}

/// An event that may happen several times, and that a test waits for.
final class Signal<Value: Sendable>: Sendable {
  private struct State {
    var values: [Value] = []
    var waiting: [CheckedContinuation<Value, Never>] = []
  }

  private let state = Mutex(State())

  func fire(_ value: Value) {
    let waiting = self.state.withLock { state -> CheckedContinuation<Value, Never>? in
      guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
      state.values.append(value)
      return nil
    }
    waiting?.resume(returning: value)
  }

  /// The next value that was or will be passed to ``fire(_:)``.
  func wait() async -> Value {
    await withCheckedContinuation { continuation in
      let value = self.state.withLock { state -> Value? in
        guard state.values.isEmpty else { return state.values.removeFirst() }
        state.waiting.append(continuation)
        return nil
      }
      if let value { continuation.resume(returning: value) }
    }
  }

  /// The number of values that nobody has waited for.
  var count: Int { self.state.withLock { $0.values.count } }
}

extension Signal where Value == Void {
  func fire() { self.fire(()) }
}

extension ScriptedTransport {
  /// A transport that answers its streams with one script after the other, repeating the last one.
  static func replying(_ scripts: [Script]) -> ScriptedTransport {
    let count = Box(0)
    return ScriptedTransport { stream in
      let index = count.increment() - 1
      scripts[min(index, scripts.count - 1)](stream)
    }
  }

  /// A transport that answers all streams with the request's message.
  static func echo() -> ScriptedTransport {
    ScriptedTransport { stream in stream.reply(stream.sentMessage) }
  }

  /// A transport that never answers.
  static func silent() -> ScriptedTransport {
    ScriptedTransport { _ in }
  }
}

extension ProtocolClient {
  /// Makes a unary call with a callback, and returns the callback's argument.
  func outcome(
    of request: Text,
    options: CallOptions = CallOptions()
  ) -> (handle: CallHandle, outcome: Signal<ResponseMessage<Text>>) {
    let outcome = Signal<ResponseMessage<Text>>()
    let handle = self.unary(.unary, request, options: options) { outcome.fire($0) }
    return (handle, outcome)
  }

  /// Sends messages on a stream, and returns a short form of its results.
  func results(sending messages: [Text] = ["a", "b"]) async -> [String] {
    let stream = self.bidirectionalStream(.bidirectional)
    for message in messages { try? await stream.send(message) }
    stream.finish()
    var results: [String] = []
    for await result in stream.results { results.append(result.short) }
    return results
  }
}
