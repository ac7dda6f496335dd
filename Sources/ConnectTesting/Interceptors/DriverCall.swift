internal import Connect
internal import DequeModule

/// One call of a driver: a real call in which the driven interceptor stands between others of the driver. The
/// outermost one sets the test's request, and the innermost one puts in the test's results.
///
/// Confined to the driver's executor.
class DriverCall {
  typealias Result = (value: any Sendable, record: HookRecord)

  final let setup: DriverSetup
  /// Of the request that the test has given. Nil if the interceptor does not see the request.
  private let request: HookRecord?
  /// For the async form.
  final let recorder: AsyncRecorder?
  /// The request as the client has made it, from the start of the call on.
  final private(set) var ownRequest: HTTPRequest<Void>?
  /// Cancels the call.
  private var cancel: (() -> Void)?
  final private(set) var isOver = false

  /// How many attempts have begun.
  private var attempt = 0
  /// How many results the driven interceptor has passed on.
  private var passedOutCount = 0
  /// Results that wait for an attempt.
  final var arrived: Deque<Result> = []
  /// The records of results on their way from the inner interceptor to the driven one. A result that no test has given has
  /// none.
  final var passed: Deque<HookRecord> = []
  private var messages = MessageRecords()

  init(_ setup: DriverSetup, request: HookRecord?) {
    self.setup = setup
    self.request = request
    self.recorder = setup.isAsync ? request.map { AsyncRecorder($0) } : nil
  }

  final var executor: VirtualExecutor { self.setup.time.executor }
  final var hasRequest: Bool { self.request != nil }

  // MARK: For subclasses

  /// Passes on results that have arrived, if an attempt waits for them.
  func feed() {}
  func sendToCall(_ message: any Sendable) {}
  func finishRequest() {}
  /// Gives up what the call holds, once it is over.
  func release() {}

  /// - Parameters:
  ///   - request: The test's request, without its message.
  ///   - chain: The hooks of each interceptor at the driven level, or an interceptor. The first one sets the request.
  final func options(_ request: HTTPRequest<Void>?, _ chain: [Any]) -> CallOptions {
    var interceptors = chain.map { hooks in
      hooks as? FixedInterceptor
        ?? (self.setup.isBytes ? FixedInterceptor(byteHooks: hooks) : FixedInterceptor(messageHooks: hooks))
    }
    interceptors[0].callHooks.requestFunction = { own in
      // A retry from the start has its own request.
      guard self.ownRequest == nil else { return }
      self.ownRequest = own
      if let request { own = request }
    }
    let confined = Confined(interceptors)
    return CallOptions(interceptors: interceptors.indices.map { index in { _ in confined.value[index] } })
  }

  /// The call has started, and may be over already.
  final func didStart(cancel: @escaping () -> Void) {
    if !self.isOver { self.cancel = cancel }
  }

  /// A request has passed the driven interceptor.
  ///
  /// - Parameter retry: What it means if this is not the first one.
  final func attemptBegins(_ request: any Sendable, orRetry retry: (Duration) -> any Sendable) {
    self.attempt += 1
    self.messages.restart()
    self.passed.reportLost()
    self.recorder?.pass(request: request, at: self.executor.now, orRetry: retry)
  }

  /// The driven interceptor has passed a result on, unless the call ends without it.
  final func didPassOut(isOver: Bool, _ record: (AsyncRecorder) -> Void) {
    self.passedOutCount += 1
    if !isOver, let recorder = self.recorder { record(recorder) }
  }

  // MARK: From the driver

  final func send(_ message: any Sendable, _ record: HookRecord) {
    self.recorder?.messages.append(record)
    self.messages.records.append(record)
    if self.isOver { record.report(.notWaiting) } else { self.sendToCall(message) }
  }

  final func receive(_ result: any Sendable, _ record: HookRecord) {
    self.recorder?.append(result: record)
    guard !self.isOver else {
      record.report(.notWaiting)
      return
    }
    self.arrived.append((result, record))
    self.feed()
  }

  /// Ends the call, unless it is over.
  final func end() {
    guard !self.isOver else { return }
    self.isOver = true
    if let recorder = self.recorder {
      recorder.end()
    } else {
      self.messages.reportUnseen()
    }
    self.passed.reportLost()
    for (_, record) in self.arrived { record.report(.notWaiting) }
    self.arrived = []
    self.release()
    self.cancel.take()?()
  }

  // MARK: Records

  /// The async form has read a result.
  final func didReadResult() {
    if let record = self.passed.popFirst() { self.recorder?.didRead(result: record, at: self.executor.now) }
  }

  /// The record of the request; nil if it comes again in a retry.
  final func takeRequestRecord() -> HookRecord? { self.request.flatMap { $0.state.wasRead ? nil : $0 } }

  /// The record of the next request message; nil if it comes again in a retry.
  final func takeMessageRecord() -> HookRecord? { self.messages.next() }

  /// A `proceed` for the driven hook, which records what the hook calls it with.
  ///
  /// - Parameters:
  ///   - record: Nil if no test looks at what the hook does.
  ///   - send: Passes a verb on to `proceed`.
  ///   - effect: What the call makes of a verb, given whether it has refused the retry that the verb asks for.
  final func recording<Verb, Outer>(
    _ proceed: Proceed<Outer>,
    _ record: HookRecord?,
    send: @escaping @Sendable (Verb) -> Void,
    effect: @escaping @Sendable (_ verb: Verb, _ isRefused: Bool) -> Verb = { verb, _ in verb }
  ) -> Proceed<Verb> {
    let record = record ?? HookRecord()
    record.read()
    let (executor, here, attempt) = (self.executor, Confined(self, to: self.executor), self.attempt)
    // The call waits for the hook, and so ends when the hook releases `proceed` without calling it.
    let lifetime = Lifetime {
      if record.report(.letGoOfProceed) { executor.execute { here.value.end() } }
    }
    return Proceed(around: proceed) { verb in
      executor.run {
        let isIgnored = here.value.isOver || here.value.attempt != attempt
        let passedOutCount = here.value.passedOutCount
        send(verb)
        // What the call makes of the verb is known once the call is at rest.
        executor.execute {
          withExtendedLifetime(lifetime) {
            let isRefused = here.value.isOver || here.value.passedOutCount > passedOutCount
            record.proceed(verb, effect: isIgnored ? nil : effect(verb, isRefused))
          }
        }
      }
    }
  }
}

extension Deque<HookRecord> {
  /// Results that did not reach the interceptor are lost with their attempt.
  fileprivate mutating func reportLost() {
    for record in self { record.report(.notWaiting) }
    self = []
  }
}

/// The records of all request messages.
private struct MessageRecords {
  var records: [HookRecord] = []
  /// How many of them the hook has seen.
  private var seenCount = 0
  /// The next one of this attempt.
  private var index = 0

  mutating func restart() { self.index = 0 }

  mutating func next() -> HookRecord? {
    defer { self.index += 1 }
    guard self.index == self.seenCount, self.index < self.records.count else { return nil }
    self.seenCount += 1
    return self.records[self.index]
  }

  func reportUnseen() {
    for record in self.records.dropFirst(self.seenCount) { record.report(.notWaiting) }
  }
}
