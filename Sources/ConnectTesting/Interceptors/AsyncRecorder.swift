internal import Connect

/// Records what an interceptor in its async form, which calls no `proceed`, does with each value. Derives it from what the
/// interceptor reads, returns, and sends inwards.
///
/// Confined to the driver's executor.
final class AsyncRecorder {
  private let request: HookRecord
  var messages = ValuesInOrder()
  private(set) var results = ValuesInOrder()
  /// Whether the request has led to nothing yet.
  private var isAtRequest = true
  private var lastResultTime = Duration.zero

  init(_ request: HookRecord) {
    self.request = request
    request.read()
  }

  func append(result: HookRecord) { self.results.append(result) }

  /// - Parameter drop: What it means if nothing was passed on for the last result.
  func willReadResult(orDropped drop: any Sendable) { self.results.willRead(orDropped: drop) }

  func didRead(result: HookRecord, at time: Duration) {
    self.results.didRead(result)
    self.lastResultTime = time
  }

  /// The interceptor has sent a request inwards.
  ///
  /// - Parameter retry: What it means if this is not the first one.
  func pass(request: any Sendable, at time: Duration, orRetry retry: (Duration) -> any Sendable) {
    if self.isAtRequest {
      self.isAtRequest = false
      self.request.add(request)
    } else {
      self.results.pass(retry(time - self.lastResultTime))
      self.results.restart()
      self.messages.last = nil
    }
  }

  /// The interceptor has given a response or a result.
  ///
  /// - Parameter answer: What it means if no request was sent inwards; nil if more has to come.
  func pass(result: any Sendable, orAnswer answer: (any Sendable)?) {
    if !self.isAtRequest { self.results.pass(result) } else if let answer { self.request.add(answer) }
  }

  /// Nothing is read or passed on any more.
  func end() {
    self.messages.end(.letGoOfProceed)
    self.results.end(.notWaiting)
  }
}

/// Records what becomes of the values of one kind. A verb counts for the value that was read last, or for the first value
/// if none was read.
struct ValuesInOrder {
  private var all: [HookRecord] = []
  /// The verbs recorded before the first value was given.
  private var early: [any Sendable] = []
  /// The value that was read last.
  var last: HookRecord?

  mutating func append(_ value: HookRecord) {
    self.all.append(value)
    for verb in self.early { value.add(verb) }
    self.early = []
  }

  /// The next value is about to be read: if nothing was passed on for the last value, it was dropped.
  func willRead(orDropped drop: any Sendable) {
    if let last = self.last, last.state.isOpen { last.add(drop) }
  }

  mutating func didRead(_ index: Int) {
    if self.all.indices.contains(index) { self.didRead(self.all[index]) }
  }

  mutating func didRead(_ value: HookRecord) {
    value.read()
    self.last = value
  }

  mutating func pass(_ verb: any Sendable) {
    if let value = self.last ?? self.all.first { value.add(verb) } else { self.early.append(verb) }
  }

  /// Values that were not read belong to a new attempt.
  mutating func restart() {
    self.all.removeAll { !$0.state.isOpen || $0.state.wasRead }
    self.last = nil
  }

  /// - Parameter kind: The misuse to report for a value that was read and led to nothing.
  func end(_ kind: HookMisuse.Kind) {
    for value in self.all { value.report(value.state.wasRead ? kind : .notWaiting) }
  }
}
