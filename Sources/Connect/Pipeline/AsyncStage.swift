/// The async form of an interceptor, as a stage of a pipeline. Its body runs in a task of its own; what it wants reaches the
/// pipeline through ``PipelineHost/perform(_:)``.
protocol AsyncStage: AnyObject {
  /// Where it stands in the pipeline.
  var index: Int { get set }

  // MARK: The request

  /// Whether it takes another part from outside.
  var hasRoom: Bool { get }
  /// Takes a part of the request from outside.
  func accept(_ part: RequestPart, of host: any PipelineHost, in pipeline: Pipeline)
  /// The next part of the request that goes on inwards.
  func takeReady() -> RequestPart?
  /// Counts the bytes that a message turned out to have against what may be kept.
  func charge(_ byteCount: Int)

  // MARK: The response

  /// Whether a result should be brought to it from inside.
  ///
  /// - Parameter isWanted: Whether a result of this stage is wanted outside.
  func wantsResult(_ isWanted: Bool) -> Bool
  /// Takes a result from inside.
  func accept(_ result: ResultPart)
  /// The next result that goes on outwards.
  func takeReadyResult() -> ResultPart?

  // MARK: Its life

  /// Runs jobs of stages inside, while a `next` is under way.
  var runner: (any JobRunner)? { get }
  /// What it has and has not passed on.
  var held: HookHolder.Held? { get }
  /// Whether nothing of the request has gone on inwards.
  var holdsHead: Bool { get }
  /// Gives up what it does.
  func reset()
  /// Lets the body see `error` as the end of what it waits for; the call is over.
  func end(with error: ConnectError)
}
