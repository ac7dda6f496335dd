/// The call around a ``Pipeline``: what is outside of its first stage and inside of its last one.
package protocol PipelineHost: AnyObject, Sendable {
  var method: MethodInfo { get }
  var executor: any CallExecutor { get }
  var taskExecutor: any TaskExecutor { get }
  /// What is bound around hooks; nil if nothing is.
  var inheritance: Inheritance? { get }
  var isOver: Bool { get }
  /// The same, for other threads.
  var hasEnded: Bool { get }

  // MARK: Its interceptors

  var interceptorCount: Int { get }
  /// Asks an interceptor for its call hooks.
  func askForCallHooks(_ index: Int) -> any Interceptor
  func addMetricsHook(_ hook: MetricsReport.Hook)

  // MARK: Outside

  /// How many results the caller wants.
  var demand: Int { get }
  /// Takes a result that has passed all stages.
  func deliver(_ result: ResultPart)
  /// The next part of the request that the caller has sent; nil for none.
  func takeOutgoing() -> RequestPart?
  /// That part has gone inwards as far as it gets for now.
  func outgoingWasTaken()

  // MARK: The codec

  /// The message's bytes, in a part of bytes.
  func encode(_ part: RequestPart) throws(ConnectError) -> RequestPart
  /// The message in the bytes of a result.
  func decode(_ result: ResultPart) throws(ConnectError) -> ResultPart

  // MARK: Inside

  var attemptHasRoom: Bool { get }
  /// Takes a part of the request that has passed all stages; a head starts an attempt.
  func transmit(_ part: RequestPart)
  /// The next result that has arrived; nil if more has to arrive for that.
  func takeArrived() -> ResultPart?
  /// Gives up what is on the wire.
  func dropAttempts()

  // MARK: Attempts

  /// Takes one retry from the cap. False if the cap is reached, or if the delay would pass the deadline.
  func takeRetry(after delay: Duration) -> Bool
  /// Runs `work` after a delay, unless the call is over by then.
  func afterDelay(_ delay: Duration, _ work: @escaping () -> Void)
  /// The error of the last attempt that a hook has given up.
  var retryCause: ConnectError? { get set }

  // MARK: Hooks

  /// Continues the call after a hook that had returned has proceeded.
  func hookDid(_ action: HookAction, _ visit: Visit)
  /// The last `proceed` of a visit is gone, and was not called.
  func hookWasDropped(_ visit: Visit.Place, _ number: Int)
  /// A hook has returned and not proceeded, or an async interceptor goes on with what it was given.
  func hookWaits()
  func logIgnored(_ what: String)
  /// Runs a job of an async interceptor where the call was made.
  func run(_ job: Job)
  /// Lets the pipeline continue: something has changed.
  func pump()
  /// Gives an async interceptor's doing to the pipeline, once no hook is on the stack.
  func perform(_ work: @escaping (Pipeline) -> Void)
}
