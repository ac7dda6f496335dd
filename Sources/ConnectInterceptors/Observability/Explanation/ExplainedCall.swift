internal import Connect
internal import Synchronization

/// What a ``CallExplainer`` knows of one call. The call's stopwatches tell it, from any thread.
final class ExplainedCall: Sendable {
  /// Which way a value goes through an interceptor.
  enum Direction { case request, response }

  /// What the codec does with a message.
  enum Coding { case encoding, decoding }

  /// One visit of a value at an interceptor, from when it comes until the interceptor proceeds.
  struct Visit: Hashable {
    fileprivate let number: Int
  }

  fileprivate struct OpenVisit {
    let interceptor: Int
    let direction: Direction
    let start: Duration
  }

  private struct State {
    var explanation = CallExplanation()
    /// Nil before the call and after it.
    var start: Duration?
    /// Where the times of the explanation count from.
    var zero = Duration.zero
    var openVisits: [Visit: OpenVisit] = [:]
    var visitCount = 0
    var codingStarts: [Coding: Duration] = [:]
  }

  private let time: ElapsedTime
  private let state: Mutex<State>

  /// - Parameters:
  ///   - interceptors: The names of the call's interceptors, outermost first.
  ///   - time: What times are measured with.
  init(_ interceptors: [String], _ time: ElapsedTime) {
    var state = State()
    state.explanation.interceptors = interceptors.map { CallExplanation.InterceptorTime(name: $0) }
    self.state = Mutex(state)
    self.time = time
  }

  /// What is known by now.
  var explanation: CallExplanation {
    let now = self.time.now
    return self.state.withLock { state in
      var explanation = state.explanation
      if let start = state.start { explanation.duration = now - start }
      return explanation
    }
  }

  // MARK: The call

  func callDidBegin(_ method: MethodInfo, _ server: Origin) {
    let now = self.time.now
    self.state.withLock { state in
      guard state.start == nil else { return }  // Another attempt.
      state.start = now
      state.zero = now
      state.explanation.method = SemanticConventions.methodName(inPath: method.path)
      state.explanation.server = server.description
    }
  }

  func callDidEnd(_ code: Code) {
    let now = self.time.now
    self.state.withLock { state in
      guard let start = state.start else { return }
      state.start = nil
      for visit in state.openVisits.values { state.explanation.add(now - visit.start, visit) }
      state.openVisits = [:]
      state.explanation.code = code
      state.explanation.duration = now - start
    }
  }

  // MARK: Interceptors

  func begin(_ interceptor: Int, _ direction: Direction) -> Visit {
    let now = self.time.now
    return self.state.withLock { state in
      state.visitCount += 1
      let visit = Visit(number: state.visitCount)
      // Hooks may still be called when the call is over.
      guard state.start != nil else { return visit }
      state.openVisits[visit] = OpenVisit(interceptor: interceptor, direction: direction, start: now)
      return visit
    }
  }

  func end(_ visit: Visit) {
    let now = self.time.now
    self.state.withLock { state in
      guard let open = state.openVisits.removeValue(forKey: visit) else { return }
      state.explanation.add(now - open.start, open)
    }
  }

  // MARK: Codec

  func didBegin(_ coding: Coding) {
    let now = self.time.now
    self.state.withLock { $0.codingStarts[coding] = now }
  }

  func didEnd(_ coding: Coding) {
    let now = self.time.now
    self.state.withLock { state in
      guard let start = state.codingStarts.removeValue(forKey: coding) else { return }
      switch coding {
      case .encoding: state.explanation.encoding += now - start
      case .decoding: state.explanation.decoding += now - start
      }
    }
  }

  // MARK: Attempts

  func attemptDidBegin() {
    let now = self.time.now
    self.state.withLock { state in
      guard let start = state.start else { return }
      state.explanation.attempts.append(CallExplanation.Attempt(start: now - start))
    }
  }

  /// - Parameter update: Gets the attempt, and the time since it began.
  func updateAttempt(_ update: (inout CallExplanation.Attempt, Duration) -> Void) {
    let now = self.time.now
    self.state.withLock { state in
      guard let start = state.start, let last = state.explanation.attempts.indices.last else { return }
      update(&state.explanation.attempts[last], now - start - state.explanation.attempts[last].start)
    }
  }

  func attemptDidCost(_ metrics: HTTPMetrics) {
    let now = self.time.now
    self.state.withLock { state in
      // Metrics arrive in the order of the attempts, perhaps after the next attempt has begun or the call is over.
      let start = max(now - metrics.duration - state.zero, .zero)
      if let index = state.explanation.attempts.firstIndex(where: { $0.metrics == nil }) {
        let earlier = state.explanation.attempts[..<index].reduce(index) { $0 + $1.otherExchanges.count }
        state.explanation.attempts[index].metrics = metrics
        // A later exchange: a hedge has decided the outcome before the first exchange has ended.
        if metrics.attempt > earlier + 1 { state.explanation.attempts[index].exchangeStart = start }
      } else if let index = state.explanation.attempts.indices.last {
        state.explanation.attempts[index].add(metrics, start: start)
      }
    }
  }
}

extension CallExplanation.Attempt {
  /// Adds what one more exchange of the same attempt cost.
  ///
  /// - Parameter start: From the start of the call.
  fileprivate mutating func add(_ metrics: HTTPMetrics, start: Duration) {
    var other = CallExplanation.OtherExchange(start: start, metrics: metrics)
    // The last metrics before the outcome belong to the exchange that decided it.
    if self.code == nil, let earlier = self.metrics {
      other = CallExplanation.OtherExchange(start: self.exchangeStart, metrics: earlier)
      self.metrics = metrics
      self.exchangeStart = start
    }
    self.otherExchanges.append(other)
  }
}

extension CallExplanation {
  fileprivate mutating func add(_ duration: Duration, _ visit: ExplainedCall.OpenVisit) {
    switch visit.direction {
    case .request: self.interceptors[visit.interceptor].request += duration
    case .response: self.interceptors[visit.interceptor].response += duration
    }
  }
}
