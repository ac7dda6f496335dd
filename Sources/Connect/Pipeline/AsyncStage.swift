/// The async form of an interceptor, as a stage of a pipeline. Its body runs in a separate task, and reaches the
/// pipeline through ``PipelineHost/perform(_:)``. The windows of the ``Stage`` stay empty.
class AsyncStage: Stage {
  /// The position of the stage in the pipeline.
  final var index = 0
  final override var role: Role { .async(self) }

  // MARK: The request

  /// Whether the stage takes another part from outside.
  var hasRoom: Bool { true }
  /// Takes a part of the request from outside.
  func accept(_ part: RequestPart, of host: any PipelineHost, in pipeline: Pipeline) {}
  /// The next part of the request that goes on inwards.
  func takeReady() -> RequestPart? { nil }
  /// Counts the encoded size of a message against the limit of what is kept for a retry.
  func charge(_ byteCount: Int) {}

  // MARK: The response

  /// Whether the stage should receive a result from inside.
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
  /// Abandons the work of the stage.
  func giveUp() {}
  /// The call is over: everything that the body waits for ends with `error`.
  func end(with error: ConnectError) {}
}
