/// The caller's side of a ``Call``: what unary calls and streams do differently. Confined to the call's executor once the call
/// has started.
protocol CallSide: AnyObject {
  /// Whether jobs need a task of their own.
  var runsJobsApart: Bool { get }
  /// Called in the caller's task if the call has async interceptors, which then run with the task-local values of that
  /// task.
  func prepareForJobs(on executor: any CallExecutor)

  /// Runs a job of an async interceptor where the call was made.
  func run(_ job: Job, on executor: any CallExecutor)

  // MARK: The request

  /// What the call begins with.
  func makeRequest(_ head: RequestHead) -> RequestPart
  /// Whether the caller has sent something that was not taken yet.
  var hasOutgoing: Bool { get }
  /// The next part of the request that the caller has sent; nil for none.
  ///
  /// - Parameter isObsolete: Whether sending more is useless.
  func takeOutgoing(isObsolete: @autoclosure () -> Bool) -> RequestPart?
  /// The taken part has gone inwards as far as it can for now.
  func outgoingWasTaken()

  // MARK: Results

  /// Whether the caller has a result, which is too late for a retry from the start.
  var hasDelivered: Bool { get }
  /// How many results the caller wants.
  var demand: Int { get }
  /// Takes a result that has passed all stages and is not the end.
  func deliver(_ result: ResultPart)

  // MARK: Ends

  /// Takes the end. Called once.
  func complete(with end: ResultPart)
  /// Releases everything that waits. Called once the call is over.
  func release()

  /// An error as the end of this call.
  func end(of error: ConnectError) -> ResultPart
  /// The outcome of an end, for call hooks.
  func outcome(of end: ResultPart, after attempts: Attempts) -> CallOutcome
  /// An end as call hooks have changed it.
  func end(_ end: ResultPart, changedTo outcome: CallOutcome) -> ResultPart
}

extension CallSide {
  /// The first part of a retry from the start, as call hooks leave it; nil if they have ended the call.
  ///
  /// - Parameter given: Replaces the caller's request.
  func requestAgain(_ given: RequestPart?, _ call: Call) -> RequestPart? {
    var own = HTTPRequest<Void>(head: call.attempts.plan.makeRequestHead())
    // The call keeps the id that a call hook has given it.
    let before = call.pipeline.firstMessage ?? call.pipeline.firstBytes
    if own.context.requestID == nil, let id = call.hooks?.requestID ?? before?.head?.context?.requestID {
      own.context.requestID = id
    }
    var head = given?.head?.completed(from: own.head) ?? own.head
    if let hooks = call.hooks {
      guard let changed = hooks.passDown(head, call) else { return nil }
      head = changed
    }
    if call.plan.isUnary, case .whole(_, let message) = given { return .whole(head, message) }
    return self.makeRequest(head)
  }
}
