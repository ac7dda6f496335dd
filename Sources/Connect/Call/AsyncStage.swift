/// The async form of an interceptor, as a stage of a pipeline. Its body runs in a task of its own or, if it is an inner one of
/// a unary call, in that of the async stage outside of it. It reaches the pipeline through ``Pipeline/perform(_:_:)``. The
/// windows of the ``Stage`` stay empty.
class AsyncStage: Stage {
  /// The position of the stage in the pipeline.
  final var index = 0

  // MARK: The request

  /// Takes a part of the request from outside.
  func accept(_ part: RequestPart, of call: Call, in pipeline: Pipeline) {}

  // MARK: The response

  /// A result passes only where the body waits for one.
  final override func hasRoomForResult(_ maximum: Int) -> Bool { self.wantsResult(false, maximum) }
  /// Takes a result from inside.
  func take(_ result: consuming ResultPart) {}

  /// Whether it should receive a result: whatever is wanted outside of it, its body asks for one.
  final var awaitsResult: Bool { self.wantsResult(false, 1) }

  // MARK: Its life

  /// Runs jobs of stages inside, while a `next` is under way.
  var runner: (any JobRunner)? { nil }
  /// What it has and has not passed on.
  var held: HookHolder.Held? { nil }
  /// Whether nothing of the request has gone on inwards.
  var holdsRequest: Bool { false }
  /// Abandons the work of the stage.
  func giveUp() {}
  /// The call is over: nothing that the body does counts any more.
  ///
  /// - Returns: Has everything that the body waits for end with `error`, and cancels the body's task. To be called once all
  ///   stages know of the end, since bodies may share a task.
  func finish(with error: ConnectError) -> () -> Void { {} }
}
