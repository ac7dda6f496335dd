internal import Connect

/// The rules of all interceptors that are checked at the end of a run.
struct EndRules {
  let settings: ExplorerSettings
  /// In the order of their numbers.
  let calls: [ExploredCall]
  let exchanges: [ExplorerExchange]
  let callers: [RunCallers.Caller]
  let steps: [ExploredStep]
  /// Whether time has moved on while work was ready, so that some ends came late.
  let hasJumped: Bool
  /// Whether other threads have worked in the run, or do so within the test's patience.
  let waitsForOtherThreads: () -> Bool

  /// Whether a step of the test has failed, which may fail any call.
  private var hasFailedStep: Bool { self.steps.contains { $0.hasFailed } }

  /// The first rule that is broken.
  func firstFinding() -> Finding? {
    for call in self.calls {
      if let finding = self.misuse(call) ?? self.foreignValues(call) ?? self.requests(call)
        ?? self.outcome(call)
      {
        return finding
      }
    }
    return nil
  }

  private func allows(_ allowance: ExplorationAllowance) -> Bool {
    self.settings.allowance.contains(allowance)
  }

  private func exchanges(of call: ExploredCall) -> [ExplorerExchange] {
    self.exchanges.filter { $0.attempt.call == call.number }
  }

  // MARK: Misuse

  /// Errors with which the library tells of an interceptor's mistake.
  private func misuse(_ call: ExploredCall) -> Finding? {
    guard let error = call.error, error.code == .internalError, let message = error.message else {
      return nil
    }
    guard
      message.contains("let go of proceed without calling it")
        || message.contains("called next while an earlier next was pending")
    else { return nil }
    return Finding(rule: "each hook goes on", reason: "call \(call.number) fails: \(message)")
  }

  // MARK: Values of other calls

  private func foreignValues(_ call: ExploredCall) -> Finding? {
    for other in self.calls where other.number != call.number {
      let values = ForeignValues(of: other, unlike: call)
      for attempt in call.attempts {
        let owner = self.owner(of: attempt, call)
        guard owner.number != other.number else { continue }
        let others = owner.number == call.number ? values : ForeignValues(of: other, unlike: owner)
        if let (value, place) = others.first(in: attempt) {
          // An interceptor may send the whole request of the other call on purpose, but never a mixture of both.
          let isWhole = attempt.canary == other.requestHeaders.first(RunCallers.canaryName)
          let place = "\(place) of call \(call.number)"
          return self.leak(value, of: other, in: place, liftedBy: isWhole ? .sharedResponses : nil)
        }
      }
      guard !self.allows(.sharedResponses), !self.areEqualRequests(call, other) else { continue }
      let mark = "canary-\(other.number)-"
      let seen =
        call.received + (call.headers.map(\.value)) + call.trailers.map(\.value) + [call.error?.message ?? ""]
      if let value = seen.first(where: { $0.hasPart(mark) }) {
        let place = "the response of call \(call.number)"
        return self.leak(value, of: other, in: place, liftedBy: .sharedResponses)
      }
    }
    return nil
  }

  /// The call whose request an attempt sends: its own, unless calls may share responses, and so may ask for one another.
  private func owner(of attempt: ExploredAttempt, _ call: ExploredCall) -> ExploredCall {
    guard self.allows(.sharedResponses), let canary = attempt.canary,
      canary != call.requestHeaders.first(RunCallers.canaryName)
    else { return call }
    return self.calls.first { $0.requestHeaders.first(RunCallers.canaryName) == canary } ?? call
  }

  private func leak(
    _ value: String,
    of other: ExploredCall,
    in place: String,
    liftedBy allowance: ExplorationAllowance?
  ) -> Finding {
    Finding(
      rule: "values stay in their call",
      reason: "\(place) has “\(shortened(value))”, which is of call \(other.number)",
      allowance: allowance
    )
  }

  private func areEqualRequests(_ call: ExploredCall, _ other: ExploredCall) -> Bool {
    call.sent == other.sent
      && call.requestHeaders.map { "\($0.name): \($0.value)" }
        == other.requestHeaders.map { "\($0.name): \($0.value)" }
  }

  // MARK: Requests

  private func requests(_ call: ExploredCall) -> Finding? {
    if !self.allows(.changedMetadata), let first = call.attempts.first {
      for attempt in call.attempts.dropFirst() {
        for field in attempt.headers {
          let count = attempt.headers[field.name].count
          guard count > 1, count > first.headers[field.name].count else { continue }
          return Finding(
            rule: "headers do not pile up",
            reason:
              "attempt \(attempt.number) of call \(call.number) has the header \(field.name) \(count) times",
            allowance: .changedMetadata
          )
        }
      }
    }
    guard !self.allows(.changedMessages) else { return nil }
    for exchange in self.exchanges(of: call) {
      let messages = exchange.attempt.messages
      let isWhole = exchange.request.isComplete && exchange.attempt.answer == .ok
      let sent = self.owner(of: exchange.attempt, call).sent
      if let what = Self.difference(messages, from: sent, isWhole: isWhole) {
        return Finding(
          rule: "messages arrive as they were sent",
          reason: "in attempt \(exchange.attempt.number) of call \(call.number), a request message \(what)",
          allowance: .changedMessages
        )
      }
    }
    return nil
  }

  /// What happened to messages; nil for nothing.
  private static func difference(_ messages: [String], from sent: [String], isWhole: Bool) -> String? {
    if messages == sent || !isWhole && messages == Array(sent.prefix(messages.count)) { return nil }
    if messages == Array(sent.prefix(messages.count)) { return "is lost" }
    if messages.sorted() == sent.sorted() { return "has overtaken another one" }
    if let twice = messages.indices.dropFirst().first(where: { messages[..<$0].contains(messages[$0]) }),
      sent.contains(messages[twice])
    {
      return "comes twice: “\(shortened(messages[twice]))”"
    }
    if let changed = messages.first(where: { !sent.contains($0) }) {
      return "is changed: “\(shortened(changed))”"
    }
    return "is lost or has overtaken another one"
  }

  // MARK: Outcomes

  private func outcome(_ call: ExploredCall) -> Finding? {
    guard call.endTime != nil else { return nil }
    return self.vainWait(call) ?? call.error.map { self.failure(call, $0) } ?? self.success(call)
  }

  private func success(_ call: ExploredCall) -> Finding? {
    let good = self.exchanges(of: call).filter { $0.attempt.answer == .ok && $0.attempt.isAnswered }
    guard let last = good.last else {
      if self.allows(.recovery) || self.sharesSuccess(call) { return nil }
      let reason =
        call.attempts.last.map { "although the server answered \($0.answer.map { "\($0)" } ?? "nothing")" }
        ?? "although no request of it reached the server"
      return Finding(
        rule: "errors are not swallowed",
        reason: "call \(call.number) succeeds \(reason)",
        allowance: .recovery
      )
    }
    let source = good.last { $0.replies == call.received }
    if source == nil, !self.allows(.changedMessages) {
      if self.sharesSuccess(call) { return nil }
      let what = Self.difference(call.received, from: last.replies, isWhole: true) ?? "is changed"
      return Finding(
        rule: "messages arrive as they were sent",
        reason: "a response message of call \(call.number) \(what)",
        allowance: .changedMessages
      )
    }
    return self.metadata(call, of: source ?? last)
  }

  /// Whether another call with the same request has succeeded with the same response. If one of the call's own requests has failed,
  /// responses from before that request do not count: to use an older response is a recovery.
  private func sharesSuccess(_ call: ExploredCall) -> Bool {
    let first = call.attempts.last { $0.hasFailed }?.answersBefore ?? 0
    return self.calls.contains { other in
      other.number != call.number && (self.allows(.sharedResponses) || self.areEqualRequests(call, other))
        && self.exchanges(of: other).contains {
          $0.attempt.answer == .ok && $0.attempt.answerOrder ?? -1 >= first && $0.replies == call.received
        }
    }
  }

  /// Whether a mark is of an attempt of another call with the same request, which may share its response.
  private func isShared(_ mark: String, with call: ExploredCall) -> Bool {
    self.calls.contains { other in
      other.number != call.number && (self.allows(.sharedResponses) || self.areEqualRequests(call, other))
        && self.exchanges(of: other).contains { $0.id == mark }
    }
  }

  private func metadata(_ call: ExploredCall, of exchange: ExplorerExchange) -> Finding? {
    guard !self.allows(.changedMetadata) else { return nil }
    for field in MetadataMark.allCases {
      guard
        let what = field.problem(
          in: call,
          of: exchange.id,
          isRight: { $0 == exchange.id || self.isShared($0, with: call) }
        )
      else { continue }
      return Finding(
        rule: "headers and trailers arrive",
        reason: "the response \(field) \(field.rawValue) of call \(call.number) \(what)",
        allowance: .changedMetadata
      )
    }
    return nil
  }

  private func failure(_ call: ExploredCall, _ error: ConnectError) -> Finding? {
    let hasTimedOut = call.deadline.map { $0 <= call.endTime ?? .zero } ?? false
    guard call.cancelTime == nil, !hasTimedOut, !self.hasFailedStep else { return nil }
    guard !self.callers[call.number - 1].wasFailedByNeighbour else { return nil }
    if let finding = self.earlyDeadline(call, error) { return finding }
    let exchanges = self.exchanges(of: call)
    guard let last = exchanges.last else {
      if self.allows(.failure) || self.sharesFailure(call) { return nil }
      return Finding(
        rule: "calls fail for a reason",
        reason:
          "call \(call.number) fails with \(describe(error)), although nothing of it reached the server",
        allowance: .failure
      )
    }
    // Attempts at the same time: any of them may decide the outcome.
    let failed = exchanges.filter {
      $0.attempt.hasFailed && ($0 === last || last.attempt.overlapped.contains($0.attempt.order))
    }
    if last.attempt.hasFailed || failed.contains(where: { $0.attempt.answer?.code == error.code }) {
      return self.failure(call, error, from: failed)
    }
    guard !self.allows(.failure) else { return nil }
    if last.attempt.answer == .ok, last.attempt.isAnswered {
      return Finding(
        rule: "good answers are not lost",
        reason: "call \(call.number) fails with \(describe(error)), although the server answered ok",
        allowance: .failure
      )
    }
    // The error of an earlier attempt, while the last one still runs.
    guard !exchanges.contains(where: { $0.attempt.hasFailed && $0.attempt.answer?.code == error.code }) else {
      return nil
    }
    return Finding(
      rule: "calls fail for a reason",
      reason:
        "call \(call.number) fails with \(describe(error)), although the server has not failed its last attempt",
      allowance: .failure
    )
  }

  /// What is lost of an error of the server.
  ///
  /// - Parameter failed: The attempts that may be the source of the error, the last one last.
  private func failure(
    _ call: ExploredCall,
    _ error: ConnectError,
    from failed: [ExplorerExchange]
  ) -> Finding? {
    let named = failed.last { error.message?.contains($0.id) == true }
    // With hedging, the caller may get the error of any of the attempts at the same time.
    let trailer = MetadataMark.trailer.rawValue
    let marks = call.trailers[trailer] + error.metadata[trailer]
    let marked = failed.last { marks.contains($0.id) }
    guard let source = named ?? marked ?? failed.last, error.code == source.attempt.answer?.code,
      source.attempt.answer != .reset
    else { return nil }
    // The error may be the interceptor's own if it fails calls on purpose, or that of another call with the same request.
    if named == nil, self.allows(.failure) || self.sharesFailure(call, error) { return nil }
    return self.messages(call, before: source) ?? self.metadata(call, of: source)
  }

  /// Whether the error is one of an attempt of another call with the same request.
  private func sharesFailure(_ call: ExploredCall, _ error: ConnectError) -> Bool {
    self.exchanges.contains {
      $0.attempt.call != call.number && error.message?.contains($0.id) == true
        && self.isShared($0.id, with: call)
    }
  }

  // MARK: Deadlines

  /// The call fails with `deadline_exceeded` although its deadline has not passed, and no server says so.
  private func earlyDeadline(_ call: ExploredCall, _ error: ConnectError) -> Finding? {
    guard error.code == .deadlineExceeded, !self.allows(.failure) else { return nil }
    let isAnswer = self.exchanges.contains {
      $0.attempt.hasFailed && $0.attempt.answer?.code == .deadlineExceeded
    }
    if isAnswer { return nil }
    let when = call.deadline.map { "\($0 - (call.endTime ?? .zero)) before its deadline" }
    return Finding(
      rule: "calls end at their deadline",
      reason: "call \(call.number) fails with \(describe(error)), \(when ?? "although it has no deadline")",
      allowance: .failure
    )
  }

  /// The call ends by its deadline alone, although for more than a second nobody has kept it waiting: no server, no step of the
  /// test, no other call, no other thread. An interceptor should rather fail a call than wait beyond its deadline.
  private func vainWait(_ call: ExploredCall) -> Finding? {
    guard call.error?.code == .deadlineExceeded, call.cancelTime == nil, !self.hasJumped,
      !self.allows(.endlessCalls), let deadline = call.deadline, let end = call.endTime, end >= deadline,
      self.callers[call.number - 1].neighbour != .innerDelay
    else { return nil }
    let attempts = self.exchanges(of: call).map(\.attempt.endTime)
    let others = self.calls.filter { $0.number != call.number && $0.startTime < deadline }.map(\.endTime)
    var since = call.startTime
    for time in attempts + others + self.steps.map(\.endTime) {
      // What has not ended before the deadline may have been waited for.
      guard let time, time < deadline else { return nil }
      since = max(since, time)
    }
    guard deadline - since > .seconds(1), !self.waitsForOtherThreads() else { return nil }
    return Finding(
      rule: "no wait beyond the deadline",
      reason:
        "call \(call.number) ends only by its deadline: an interceptor has held it for \(deadline - since), and nobody else",
      allowance: .endlessCalls
    )
  }

  // MARK: Errors

  /// Messages of a stream that ends with the server's error.
  private func messages(_ call: ExploredCall, before exchange: ExplorerExchange) -> Finding? {
    let isStream = call.method == .serverStream || call.method == .bidirectionalStream
    guard isStream, !self.allows(.changedMessages),
      let what = Self.difference(call.received, from: exchange.replies, isWhole: true)
    else { return nil }
    return Finding(
      rule: "messages arrive as they were sent",
      reason: "a response message of call \(call.number), before its error, \(what)",
      allowance: .changedMessages
    )
  }

  /// Whether a call with the same request has failed at the server.
  private func sharesFailure(_ call: ExploredCall) -> Bool {
    self.calls.contains { other in
      other.number != call.number && (self.allows(.sharedResponses) || self.areEqualRequests(call, other))
        && self.exchanges(of: other).contains {
          $0.attempt.isAnswered && $0.attempt.answer != .ok
        }
    }
  }
}
