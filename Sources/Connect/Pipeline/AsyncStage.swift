/// The async form of an interceptor, as a stage of a pipeline. Its body runs in a task of its own; what the body wants reaches
/// the pipeline through ``PipelineHost/perform(_:)``. The windows of the ``Stage`` stay empty.
class AsyncStage: Stage {
  /// Where it stands in the pipeline.
  final var index = 0
  final override var role: Role { .async(self) }

  // MARK: The request

  /// Whether it takes another part from outside.
  var hasRoom: Bool { true }
  /// Takes a part of the request from outside.
  func accept(_ part: RequestPart, of host: any PipelineHost, in pipeline: Pipeline) {}
  /// The next part of the request that goes on inwards.
  func takeReady() -> RequestPart? { nil }
  /// Counts the bytes that a message turned out to have against what may be kept.
  func charge(_ byteCount: Int) {}

  // MARK: The response

  /// Whether a result should be brought to it from inside.
  ///
  /// - Parameter isWanted: Whether a result of this stage is wanted outside.
  func wantsResult(_ isWanted: Bool) -> Bool { false }
  /// Takes a result from inside.
  func take(_ result: ResultPart) {}
  /// The next result that goes on outwards.
  func takeResult() -> ResultPart? { nil }

  // MARK: Its life

  /// Runs jobs of stages inside, while a `next` is under way.
  var runner: (any JobRunner)? { nil }
  /// What it has and has not passed on.
  var held: HookHolder.Held? { nil }
  /// Whether nothing of the request has gone on inwards.
  var holdsRequest: Bool { false }
  /// Gives up what it does.
  func giveUp() {}
  /// Lets the body see `error` as the end of what it waits for; the call is over.
  func end(with error: ConnectError) {}
}
