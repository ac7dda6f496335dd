public import Connect

/// What happened in one schedule, for the rules of a test (``InterceptorExplorer/check(_:_:)``).
public struct ExplorationRun<Observed: Sendable>: Sendable {
  /// What the ``Subject`` of this schedule lets the test observe.
  public let subject: Observed
  /// The calls, in the order of their numbers. Calls that have not begun are left out.
  public let calls: [ExploredCall]
  /// What the code under test has waited for by ``ExplorerWorld/step(_:canFail:)``, in the order of the beginnings.
  public let steps: [ExploredStep]
  /// The virtual time that the schedule took.
  public let duration: Duration

  /// All attempts of all calls that reached the server, in the order of their beginnings.
  public var attempts: [ExploredAttempt] {
    self.calls.flatMap(\.attempts).sorted { $0.order < $1.order }
  }
}

/// One call of a schedule, as its caller saw it. Times are virtual, from the start of the schedule.
public struct ExploredCall: Sendable {
  /// 1 for the first call.
  public let number: Int
  /// What kind of method was called.
  public let method: StreamType
  /// The headers of the caller's request.
  public internal(set) var requestHeaders: Headers
  /// The texts that the caller has sent.
  public internal(set) var sent: [String] = []
  /// When the call began.
  public internal(set) var startTime: Duration
  /// When its caller got the outcome; nil if it never did.
  public internal(set) var endTime: Duration?
  /// When its deadline passes; nil for a call without a deadline.
  public internal(set) var deadline: Duration?
  /// When the explorer has cancelled it; nil if it has not.
  public internal(set) var cancelTime: Duration?
  /// Headers of the response.
  public internal(set) var headers = Headers()
  /// When the caller of a call with a stream of responses got the headers; nil if it did not, and for other calls.
  public internal(set) var headersTime: Duration?
  /// The texts of the messages that the caller received: at most one for calls that receive one message.
  public internal(set) var received: [String] = []
  /// Trailers of the response. Those of an error are its metadata.
  public internal(set) var trailers = Headers()
  /// Why the call failed; nil if it succeeded, or has not ended.
  public internal(set) var error: ConnectError?
  /// What reached the server, in the order of the beginnings.
  public internal(set) var attempts: [ExploredAttempt] = []

  /// The code of the outcome; nil if the call has not ended.
  public var code: Code? { self.endTime == nil ? nil : self.error?.code ?? .ok }
}

/// One request of a call that reached the server.
public struct ExploredAttempt: Sendable {
  /// The call's number.
  public let call: Int
  /// 1 for the call's first attempt.
  public let number: Int
  /// The place among all attempts of the schedule.
  let order: Int
  /// The places of the call's attempts that were open when this one began, as in hedging.
  let overlapped: [Int]
  /// How many answers of the schedule have gone to the client as a whole before this attempt began.
  let answersBefore: Int
  /// When the request's head arrived.
  public let time: Duration
  /// The request's headers, with those of the Connect protocol.
  public let headers: Headers
  /// The texts of the request's messages so far.
  public internal(set) var messages: [String] = []
  /// What the server has answered; nil if it has not begun to.
  public internal(set) var answer: ExplorerAnswer?
  /// When the server sent the headers of the response; nil if it has not.
  public internal(set) var headersTime: Duration?
  /// When the answer was complete, or the client gave the attempt up; nil if neither has happened.
  public internal(set) var endTime: Duration?
  /// Whether the client gave up the attempt.
  public internal(set) var isCancelled = false
  /// The place among all answers of the schedule that have gone to the client as a whole; nil if this one has not.
  var answerOrder: Int?
  /// Whether the answer has gone to the client as a whole.
  var isAnswered: Bool { self.answerOrder != nil }
  /// Whether the server has answered with an error.
  var hasFailed: Bool { self.isAnswered && self.answer?.code.map { $0 != .ok } ?? false }
  /// Whose request it is, by the explorer's own header.
  var canary: String? { self.headers.first(RunCallers.canaryName) }
}

/// Something that the code under test waited for.
public struct ExploredStep: Sendable {
  /// The name that the test gave it.
  public let name: String
  /// When it began.
  public let time: Duration
  /// When it ended; nil if it did not.
  public internal(set) var endTime: Duration?
  /// Whether it threw an ``ExplorerStepFailure``.
  public internal(set) var hasFailed = false
}
