internal import ConnectNIO
internal import LoopbackServer
internal import Synchronization

/// How long tests wait for required events. Only broken code reaches this limit.
let patience = Duration.seconds(60)

/// Waits for `work`, but not longer than `limit`, even if `work` ignores cancellation.
func bounded<Value: Sendable>(
  _ what: String,
  within limit: Duration = patience,
  _ work: @escaping @Sendable () async throws -> Value
) async throws -> Value {
  let results = Recorder<Result<Value, any Error>>()
  let task = Task {
    do { results.record(.success(try await work())) } catch { results.record(.failure(error)) }
  }
  do {
    return try await results.wait(for: 1, of: what, within: limit)[0].get()
  } catch {
    task.cancel()
    throw error
  }
}

/// Waits until `condition` holds.
///
/// - Throws: ``LoopbackServerError`` if the wait takes too long.
func eventually(
  _ what: @autoclosure () -> String,
  within limit: Duration = patience,
  _ condition: () throws -> Bool
) async throws {
  let end = ContinuousClock.now + limit
  while !(try condition()) {
    guard ContinuousClock.now < end else { throw LoopbackServerError("not within \(limit): \(what())") }
    try await Task.sleep(for: .milliseconds(2))
  }
}

/// Records the arguments of callbacks.
final class Recorder<Value: Sendable>: Sendable {
  private let state = Mutex<[Value]>([])

  var values: [Value] { self.state.withLock { $0 } }

  func record(_ value: Value) {
    self.state.withLock { $0.append(value) }
  }

  /// Waits until there are `count` values.
  @discardableResult
  func wait(for count: Int, of what: String = "values", within limit: Duration = patience) async throws
    -> [Value]
  {
    try await eventually("\(count) \(what), only \(self.values.count)", within: limit) {
      self.state.withLock { $0.count >= count }
    }
    return self.values
  }
}

/// A counter that several threads increment.
final class Counter: Sendable {
  private let count = Mutex(0)

  var value: Int { self.count.withLock { $0 } }

  /// Increments the counter, and returns the new value.
  @discardableResult
  func increment(by step: Int = 1) -> Int {
    self.count.withLock { count in
      count += step
      return count
    }
  }
}

/// Shuts down a client that has no calls.
func shutDown(_ httpClient: NIOHTTPClient) async throws {
  try await bounded("the shutdown of a client without calls") { await httpClient.shutdown() }
}
