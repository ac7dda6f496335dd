public import Connect
internal import Synchronization

/// Stops calls to a server that fails, and checks from time to time whether it has recovered. One circuit breaker
/// serves all calls of a client, or of several, with a circuit for each host or method.
///
/// ```swift
/// let breaker = CircuitBreaker()
/// config.interceptors = [{ _ in CircuitBreakerInterceptor(breaker) }]
/// ```
///
/// A circuit is closed while calls go through. When enough recent calls have failed, it opens: calls fail at once
/// with `unavailable`. After a while it is half-open: a few trial calls go through. If all of them succeed, it closes; as
/// soon as one fails, it opens again.
public final class CircuitBreaker: Sendable {
  /// Whether a circuit lets calls through.
  public enum State: Sendable, Hashable {
    /// All calls go through, and their outcomes are counted.
    case closed
    /// All calls fail at once with `unavailable`.
    case open
    /// A few trial calls go through; all others fail as if the circuit were open.
    case halfOpen
  }

  /// Which calls share a circuit.
  public enum Scope: Sendable, Hashable {
    /// Each server: all methods at one origin share a circuit.
    case host
    /// Each method at each server.
    case method
  }

  /// When circuits open and close.
  public struct Configuration: Sendable, Hashable {
    /// Which calls share a circuit: by default those to a host (``Scope/host``).
    public var scope: Scope
    /// The codes of errors that count as failures. Other answers of a server count as successes. Errors of calls that were
    /// not sent do not count, such as a full queue or an error by an interceptor further inside. Nor does cancellation.
    public var failureCodes: Set<Code>
    /// The rate of failures, from 0 to 1, at which a circuit opens. With more than 1, or not-a-number, no circuit opens.
    public var failureRate: Double
    /// How many calls a circuit must have seen in the window before it opens.
    public var minimumCalls: Int
    /// How far back outcomes count.
    public var window: Duration
    /// How long a circuit is open before it tries again. A trial call that takes longer is not waited for.
    public var openDuration: Duration
    /// How many trial calls must succeed, and how many may be in flight at the same time; at least 1.
    public var trialCalls: Int
    /// How many circuits are kept at most; beyond, the least recently used circuit is forgotten. At least 1.
    public var maximumCircuits: Int

    /// A configuration as given; what is left out is as in ``defaults``.
    public init(
      scope: Scope = .host,
      failureCodes: Set<Code> = [.unavailable, .deadlineExceeded, .internalError, .unknown, .dataLoss],
      failureRate: Double = 0.5,
      minimumCalls: Int = 20,
      window: Duration = .seconds(10),
      openDuration: Duration = .seconds(5),
      trialCalls: Int = 1,
      maximumCircuits: Int = 1000
    ) {
      self.scope = scope
      self.failureCodes = failureCodes
      self.failureRate = failureRate
      self.minimumCalls = minimumCalls
      self.window = window
      self.openDuration = openDuration
      self.trialCalls = max(1, trialCalls)
      self.maximumCircuits = max(1, maximumCircuits)
    }

    /// A circuit for each host. It opens for 5 s when half of at least 20 calls within 10 s have failed, and closes after one
    /// successful trial call.
    public static var defaults: Configuration { Configuration() }
  }

  /// What a circuit is for.
  public struct Key: Sendable, Hashable, CustomStringConvertible {
    /// The server.
    public var origin: Origin
    /// The method's path; nil for all of the host's.
    public var path: String?

    public var description: String { "\(self.origin)\(self.path ?? "")" }
  }

  private struct Circuits {
    var byKey: [Key: SharedCircuit] = [:]
    /// Most clients have one host: then nothing is looked up.
    var latest: SharedCircuit?
  }

  /// When circuits open and close. It never changes.
  public let configuration: Configuration
  private let time: ElapsedTime
  private let onChange: (@Sendable (Key, State) -> Void)?
  private let circuits = Mutex(Circuits())

  /// A circuit breaker whose circuits are closed.
  ///
  /// - Parameters:
  ///   - configuration: See ``configuration``.
  ///   - clock: Must not be set back.
  ///   - onChange: Called when a circuit has changed its state, by the call that caused it: it must not block.
  public init(
    _ configuration: Configuration = .defaults,
    clock: any Clock<Duration> = ContinuousClock(),
    onChange: (@Sendable (Key, State) -> Void)? = nil
  ) {
    self.configuration = configuration
    self.time = ElapsedTime(on: clock)
    self.onChange = onChange
  }

  /// The state of the circuit that a request would meet. An open circuit becomes half-open only when a trial call begins.
  public func state(for url: RequestURL) -> State {
    self.circuits.withLock { $0.byKey[self.key(for: url)] }?.value.withLock { $0.state } ?? .closed
  }

  private func key(for url: RequestURL) -> Key {
    Key(origin: url.origin, path: self.configuration.scope == .method ? url.path : nil)
  }

  // MARK: For calls

  /// The circuit of a request, made with the first one.
  func circuit(for url: RequestURL) -> SharedCircuit {
    if let circuit = self.circuits.withLock({ self.knownCircuit(for: url, in: &$0) }) { return circuit }
    // Not under the lock: the clock is the user's.
    let now = self.time.now
    return self.circuits.withLock { circuits in
      // It may have been made while the clock was read.
      if let circuit = self.knownCircuit(for: url, in: &circuits) { return circuit }
      let circuit = self.makeCircuit(self.key(for: url), at: now, in: &circuits.byKey)
      circuits.latest = circuit
      return circuit
    }
  }

  private func knownCircuit(for url: RequestURL, in circuits: inout Circuits) -> SharedCircuit? {
    if let latest = circuits.latest, self.isCircuit(latest, for: url) { return latest }
    guard let circuit = circuits.byKey[self.key(for: url)] else { return nil }
    circuits.latest = circuit
    return circuit
  }

  private func isCircuit(_ circuit: SharedCircuit, for url: RequestURL) -> Bool {
    circuit.key.origin == url.origin && (circuit.key.path == nil || circuit.key.path == url.path)
  }

  private func makeCircuit(
    _ key: Key,
    at now: Duration,
    in circuits: inout [Key: SharedCircuit]
  ) -> SharedCircuit {
    if circuits.count >= self.configuration.maximumCircuits {
      // Rare: no client should have so many hosts or methods, so all are scanned.
      // Circuits with calls in flight are removed last.
      let uses = circuits.mapValues { $0.value.withLock { ($0.pendingCount > 0, $0.lastUse) } }
      let oldest = uses.min {
        !$0.value.0 && $1.value.0 || $0.value.0 == $1.value.0 && $0.value.1 < $1.value.1
      }
      if let oldest { circuits[oldest.key] = nil }
    }
    let circuit = SharedCircuit(key, Circuit(self.configuration, at: now))
    circuits[key] = circuit
    return circuit
  }

  /// Lets a call through, or gives the error that it fails with.
  func admit(to circuit: SharedCircuit) -> Result<Circuit.Admission, ConnectError> {
    if let admission = circuit.value.withLock({ $0.admitIfClosed() }) { return .success(admission) }
    // Not under the lock, since the clock is the user's. And only if needed: reading a clock costs more than all else here.
    let now = self.time.now
    let (decision, reason) = self.change(circuit) { ($0.admit(at: now), $0.reason) }
    switch decision {
    case .admitted(let admission):
      return .success(admission)
    case .refused(let remaining):
      let error = ConnectError(
        code: .unavailable,
        message:
          "the circuit breaker of \(circuit.key) is open since \(reason.failures) of \(reason.total) calls"
          + " failed; the next call is tried in \(remaining)"
      )
      return .failure(error.forbiddingRetry())
    }
  }

  /// Counts the outcome of a call that was let through.
  func record(_ admission: Circuit.Admission, of circuit: SharedCircuit, error: ConnectError?) {
    let isFailure = error.map { self.configuration.failureCodes.contains($0.code) } ?? false
    if let error, error.isUnsent || !isFailure && (error.httpStatus == nil || error.code == .canceled) {
      self.forget(admission, of: circuit)
      return
    }
    let now = self.time.now
    self.change(circuit) { $0.record(admission, isFailure: isFailure, at: now) }
  }

  /// An admitted call has ended with an unknown outcome.
  func forget(_ admission: Circuit.Admission, of circuit: SharedCircuit) {
    circuit.value.withLock { $0.forget(admission) }
  }

  private func change<Value>(_ circuit: SharedCircuit, _ change: (inout Circuit) -> Value) -> Value {
    let (value, old, new) = circuit.value.withLock { circuit in
      let old = circuit.state
      let value = change(&circuit)
      return (value, old, circuit.state)
    }
    if old != new { self.onChange?(circuit.key, new) }
    return value
  }
}

/// A circuit that calls share.
final class SharedCircuit: Sendable {
  let key: CircuitBreaker.Key
  let value: Mutex<Circuit>

  init(_ key: CircuitBreaker.Key, _ circuit: Circuit) {
    self.key = key
    self.value = Mutex(circuit)
  }
}
