internal import Connect

/// Notes what an interceptor in its async form, which calls no `proceed`, does with each value. Derives it from what its
/// pipeline passes in and out, and from what it reads.
///
/// Confined to the driver's executor.
final class AsyncNotes<OfRequest: Sendable, OfMessage: Sendable, OfResult: Sendable> {
  private let verbs: DrivenVerbs<OfRequest, OfMessage, OfResult>
  private let request: HookRecord<OfRequest>
  private(set) var messages = ValuesInOrder<OfMessage>()
  private(set) var results = ValuesInOrder<OfResult>()
  /// Whether the request has led to nothing yet.
  private var isAtRequest = true
  /// The results that the interceptor gives instead of passing the request on.
  private var answer: [ResultPart] = []
  private var hasThrown = false
  private var lastResultTime = Duration.zero

  init(_ verbs: DrivenVerbs<OfRequest, OfMessage, OfResult>, _ request: HookRecord<OfRequest>) {
    self.verbs = verbs
    self.request = request
    request.read()
  }

  // MARK: Given

  func append(message: HookRecord<OfMessage>) { self.messages.append(message) }

  func append(result: HookRecord<OfResult>) { self.results.append(result) }

  // MARK: Read

  func willReadMessage(_ index: Int) {
    if let drop = self.verbs.droppedMessage { self.messages.willRead(drop) }
  }

  func didReadMessage(_ index: Int) { self.messages.didRead(index) }

  func willReadResult() {
    if let drop = self.verbs.droppedResult { self.results.willRead(drop) }
  }

  func didRead(result: HookRecord<OfResult>, at time: Duration) {
    self.results.didRead(result)
    self.lastResultTime = time
  }

  func didThrow() { self.hasThrown = true }

  // MARK: Passed on

  func pass(_ part: RequestPart, at time: Duration) {
    switch part {
    case .message, .bytes:
      self.messages.pass(self.verbs.message(part))
    case .whole, .wholeBytes, .head:
      if self.isAtRequest {
        self.isAtRequest = false
        self.request.add(self.verbs.passed(part))
      } else {
        self.results.pass(self.verbs.retried(part, time - self.lastResultTime))
        self.results.restart()
        self.messages.last = nil
      }
    case .end:
      break
    }
  }

  func pass(_ result: ResultPart) {
    guard self.isAtRequest else {
      self.results.pass(self.verbs.result(result))
      return
    }
    self.answer.append(result)
    guard result.isEnd else { return }
    if self.hasThrown, let error = result.error {
      self.request.add(self.verbs.failed(error))
    } else {
      self.request.add(self.verbs.answered(self.answer))
    }
  }

  /// Nothing is read or passed on any more.
  func end() {
    self.messages.end(.letGoOfProceed)
    self.results.end(.notWaiting)
  }
}

/// Notes what becomes of the values of one kind. A verb counts for the value that was read last, or for the first value
/// if none was read.
struct ValuesInOrder<Verb: Sendable> {
  private var all: [HookRecord<Verb>] = []
  /// The verbs noted before the first value was given.
  private var early: [Verb] = []
  /// The value that was read last.
  var last: HookRecord<Verb>?

  mutating func append(_ value: HookRecord<Verb>) {
    self.all.append(value)
    for verb in self.early { value.add(verb) }
    self.early = []
  }

  /// The next value is about to be read: if nothing was passed on for the last value, it was dropped.
  func willRead(_ drop: Verb) {
    if let last = self.last, last.isOpen { last.add(drop) }
  }

  mutating func didRead(_ index: Int) {
    if self.all.indices.contains(index) { self.didRead(self.all[index]) }
  }

  mutating func didRead(_ value: HookRecord<Verb>) {
    value.read()
    self.last = value
  }

  mutating func pass(_ verb: Verb?) {
    guard let verb else { return }
    if let value = self.last ?? self.all.first { value.add(verb) } else { self.early.append(verb) }
  }

  /// Values that were not read belong to a new attempt.
  mutating func restart() {
    self.all.removeAll { !$0.isOpen || $0.state.wasRead }
    self.last = nil
  }

  /// - Parameter kind: The misuse to report for a value that was read and led to nothing.
  func end(_ kind: HookMisuse.Kind) {
    for value in self.all { value.report(value.state.wasRead ? kind : .notWaiting) }
  }
}
