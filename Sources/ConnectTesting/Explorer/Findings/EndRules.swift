internal import Connect

/// The rules of all interceptors that are checked at the end of a run.
struct EndRules {
  let settings: ExplorerSettings
  /// In the order of their numbers.
  let calls: [ExploredCall]
  let exchanges: [ExplorerExchange]
  let callers: [RunCallers.Caller]
  /// Whether a step of the test has failed, which may fail any call.
  let hasFailedStep: Bool
  /// Whether time has moved on while work was ready, so that some ends came late.
  let hasJumped: Bool

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
      let values = self.values(of: other, unlike: call)
      for attempt in call.attempts {
        for field in attempt.headers {
          if let value = values.first(where: { field.value.hasPart($0) }) {
            return self.leak(value, of: other, in: "the request header \(field.name) of call \(call.number)")
          }
        }
        if let message = attempt.messages.first(where: { text in values.contains { text.hasPart($0) } }) {
          return self.leak(message, of: other, in: "a request message of call \(call.number)")
        }
      }
      guard !self.allows(.sharedResponses), !self.areEqualRequests(call, other) else { continue }
      let mark = "canary-\(other.number)-"
      let seen =
        call.received + (call.headers.map(\.value)) + call.trailers.map(\.value) + [call.error?.message ?? ""]
      if let value = seen.first(where: { $0.hasPart(mark) }) {
        return self.leak(value, of: other, in: "the response of call \(call.number)")
      }
    }
    return nil
  }

  private func leak(_ value: String, of other: ExploredCall, in place: String) -> Finding {
    Finding(
      rule: "values stay in their call",
      reason: "\(place) has “\(value)”, which is of call \(other.number)"
    )
  }

  /// What only the other call's caller has sent.
  private func values(of other: ExploredCall, unlike call: ExploredCall) -> [String] {
    let own = call.requestHeaders.map(\.value) + call.sent
    return (other.requestHeaders.map(\.value) + other.sent).filter { value in
      value.utf8.count >= 4 && !own.contains { $0.hasPart(value) || value.hasPart($0) }
    }
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
              "attempt \(attempt.number) of call \(call.number) has the header \(field.name) \(count) times"
          )
        }
      }
    }
    guard !self.allows(.changedMessages) else { return nil }
    for exchange in self.exchanges(of: call) {
      let messages = exchange.attempt.messages
      let isWhole = exchange.request.isComplete && exchange.attempt.answer == .ok
      if let what = Self.difference(messages, from: call.sent, isWhole: isWhole) {
        return Finding(
          rule: "messages arrive as they were sent",
          reason: "in attempt \(exchange.attempt.number) of call \(call.number), a request message \(what)"
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
      return "comes twice: “\(messages[twice])”"
    }
    if let changed = messages.first(where: { !sent.contains($0) }) { return "is changed: “\(changed)”" }
    return "is lost or has overtaken another one"
  }

  // MARK: Outcomes

  private func outcome(_ call: ExploredCall) -> Finding? {
    guard call.endTime != nil else { return nil }
    if !self.hasJumped, let deadline = call.deadline, let end = call.endTime, end > deadline {
      return Finding(
        rule: "calls end at their deadline",
        reason: "call \(call.number) ends \(end - deadline) after its deadline"
      )
    }
    return call.error.map { self.failure(call, $0) } ?? self.success(call)
  }

  private func success(_ call: ExploredCall) -> Finding? {
    let good = self.exchanges(of: call).filter { $0.attempt.answer == .ok && $0.attempt.isAnswered }
    guard let last = good.last else {
      if self.allows(.recovery) || self.sharesSuccess(call) { return nil }
      let reason =
        call.attempts.last.map { "although the server answered \($0.answer.map { "\($0)" } ?? "nothing")" }
        ?? "although no request of it reached the server"
      return Finding(rule: "errors are not swallowed", reason: "call \(call.number) succeeds \(reason)")
    }
    let source = good.last { $0.replies == call.received }
    if source == nil, !self.allows(.changedMessages) {
      if self.sharesSuccess(call) { return nil }
      let what = Self.difference(call.received, from: last.replies, isWhole: true) ?? "is changed"
      return Finding(
        rule: "messages arrive as they were sent",
        reason: "a response message of call \(call.number) \(what)"
      )
    }
    return self.metadata(call, of: source ?? last)
  }

  /// Whether another call with the same request has succeeded with the same response.
  private func sharesSuccess(_ call: ExploredCall) -> Bool {
    self.calls.contains { other in
      other.number != call.number && (self.allows(.sharedResponses) || self.areEqualRequests(call, other))
        && self.exchanges(of: other).contains {
          $0.attempt.answer == .ok && $0.attempt.isAnswered && $0.replies == call.received
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
    var trailers = call.trailers
    if let error = call.error { trailers.append(contentsOf: error.metadata) }
    // The headers of an error may be in its metadata, or be gone if an interceptor has made another error of it.
    let headers: (String, Headers, String)? = call.error == nil ? ("header", call.headers, "x-answer") : nil
    for (place, fields, name) in [headers, ("trailer", trailers, "x-answer-trailer")].compactMap(\.self) {
      let values = fields[name]
      guard !values.contains(where: { $0 == exchange.id || self.isShared($0, with: call) }) else { continue }
      let what = values.isEmpty ? "does not reach the caller" : "is of another attempt (\(values[0]))"
      return Finding(
        rule: "headers and trailers arrive",
        reason: "the response \(place) \(name) of call \(call.number) \(what)"
      )
    }
    return nil
  }

  private func failure(_ call: ExploredCall, _ error: ConnectError) -> Finding? {
    let hasTimedOut = call.deadline.map { $0 <= call.endTime ?? .zero } ?? false
    guard call.cancelTime == nil, !hasTimedOut, !self.hasFailedStep else { return nil }
    guard !self.callers[call.number - 1].wasFailedByNeighbour else { return nil }
    let exchanges = self.exchanges(of: call)
    guard let last = exchanges.last else {
      if self.allows(.failure) || self.sharesFailure(call) { return nil }
      return Finding(
        rule: "calls fail for a reason",
        reason: "call \(call.number) fails with \(describe(error)), although nothing of it reached the server"
      )
    }
    if last.attempt.isAnswered, let code = last.attempt.answer?.code, code != .ok {
      guard error.code == code, last.attempt.answer != .reset else { return nil }
      // The error may be the interceptor's own if it fails calls on purpose.
      if self.allows(.failure), error.message?.contains(last.id) != true { return nil }
      return self.messages(call, before: last) ?? self.metadata(call, of: last)
    }
    guard !self.allows(.failure) else { return nil }
    if last.attempt.answer == .ok, last.attempt.isAnswered {
      return Finding(
        rule: "good answers are not lost",
        reason: "call \(call.number) fails with \(describe(error)), although the server answered ok"
      )
    }
    return Finding(
      rule: "calls fail for a reason",
      reason:
        "call \(call.number) fails with \(describe(error)), although the server has not failed its last attempt"
    )
  }

  /// Messages of a stream that ends with the server's error.
  private func messages(_ call: ExploredCall, before exchange: ExplorerExchange) -> Finding? {
    let isStream = call.method == .serverStream || call.method == .bidirectionalStream
    guard isStream, !self.allows(.changedMessages),
      let what = Self.difference(call.received, from: exchange.replies, isWhole: true)
    else { return nil }
    return Finding(
      rule: "messages arrive as they were sent",
      reason: "a response message of call \(call.number), before its error, \(what)"
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

extension String {
  /// Whether it has `part`. Without the tables of `contains`, which cost more than the search in short texts.
  fileprivate func hasPart(_ part: String) -> Bool {
    let (bytes, part) = (self.utf8, part.utf8)
    guard let first = part.first else { return true }
    guard bytes.count >= part.count else { return false }
    var start = bytes.startIndex
    while let found = bytes[start...].firstIndex(of: first) {
      if bytes[found...].starts(with: part) { return true }
      start = bytes.index(after: found)
    }
    return false
  }
}
