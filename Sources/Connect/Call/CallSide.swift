/// The caller's side of a ``Call``: what unary calls and streams do differently. Confined to the call's executor once the call
/// has started.
protocol CallSide: AnyObject {
  /// Whether jobs need a task of their own.
  var runsJobsApart: Bool { get }
  /// The call has async interceptors: they are to run where the call is made, which is here and now.
  func prepareForJobs(on executor: any CallExecutor)
  /// Runs a job of an async interceptor where the call was made.
  func run(_ job: Job, _ executor: any CallExecutor)
  /// Whether somebody waits for the call who keeps it.
  var isWaitedFor: Bool { get }

  // MARK: The request

  /// What the call begins with.
  func makeRequest(_ head: RequestHead) -> RequestPart
  /// What the caller has sent behind that.
  func takeOutgoing(_ call: Call) -> RequestPart?
  /// That part has gone inwards as far as it gets for now.
  func outgoingWasTaken()

  // MARK: The response

  /// How many results the caller wants.
  var demand: Int { get }
  /// Takes a result that is not the end.
  func deliver(_ result: ResultPart)
  /// Takes the end. Called once.
  func complete(with end: ResultPart)
  /// Lets go of whatever waits; called once the call is over.
  func release(_ method: MethodInfo)

  // MARK: Ends

  /// An error as the end of this call.
  func end(of error: ConnectError) -> ResultPart
  /// What call hooks are told of an end.
  func outcome(of end: ResultPart) -> CallOutcome
  /// An end as call hooks have changed it.
  func end(_ end: ResultPart, changedTo outcome: CallOutcome) -> ResultPart
}
