internal import Connect
internal import Synchronization

/// What a ``CallExplainer`` knows of one call. The call's stopwatches tell it, from any thread.
final class ExplainedCall: Sendable {
  /// Which way a value goes through an interceptor.
  enum Direction { case request, response }

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
    var start: Duration?
    var openVisits: [Visit: OpenVisit] = [:]
    var visitCount = 0
    var encodingStart: Duration?
    var decodingStart: Duration?
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

  func encodingDidBegin() {
    let now = self.time.now
    self.state.withLock { $0.encodingStart = now }
  }

  func encodingDidEnd() {
    let now = self.time.now
    self.state.withLock { state in
      guard let start = state.encodingStart else { return }
      state.encodingStart = nil
      state.explanation.encoding += now - start
    }
  }

  func decodingDidBegin() {
    let now = self.time.now
    self.state.withLock { $0.decodingStart = now }
  }

  func decodingDidEnd() {
    let now = self.time.now
    self.state.withLock { state in
      guard let start = state.decodingStart else { return }
      state.decodingStart = nil
      state.explanation.decoding += now - start
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

  func updateAttempt(_ update: (inout CallExplanation.Attempt) -> Void) {
    self.state.withLock { state in
      guard state.start != nil, let last = state.explanation.attempts.indices.last else { return }
      update(&state.explanation.attempts[last])
    }
  }

  func attemptDidCost(_ metrics: HTTPMetrics) {
    self.state.withLock { state in
      let attempts = state.explanation.attempts
      // They come in the order of the attempts, though perhaps when the next has begun, or the call is over.
      var index = attempts.firstIndex { $0.metrics == nil }
      // Of an attempt that hedges, the last before its end are those of the exchange that has decided it.
      if index == nil, attempts.last?.code == nil { index = attempts.indices.last }
      guard let index else { return }
      state.explanation.attempts[index].metrics = metrics
    }
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
