/// The async form of an interceptor, as a stage of a pipeline. Its body runs in a task of its own or, if it is an inner one of
/// a unary call, in that of the async stage outside of it. It reaches the pipeline through ``Pipeline/perform(_:_:)``.
class AsyncStage {
  final let form: Stage.Form
  final let interceptor: any Interceptor.Type
  /// The position of the stage in the pipeline.
  final var index = 0

  init(_ form: Stage.Form, of interceptor: any Interceptor.Type) {
    self.form = form
    self.interceptor = interceptor
  }

  /// Whether it may have a part that can go on.
  var keepsPart: Bool { false }

  // MARK: The request

  /// Whether it takes another part of the request.
  var hasRoomForRequest: Bool { true }

  /// Takes a part of the request from outside.
  func accept(_ part: RequestPart, of call: Call, in pipeline: Pipeline) {}

  /// Counts the encoded size of a message against the limit of what is kept for a retry.
  func charge(_ byteCount: Int) {}
  /// The next part that can go on inwards.
  func takeReadyRequest() -> RequestPart? { nil }

  // MARK: The response

  /// Takes a result from inside.
  func take(_ result: consuming ResultPart) {}

  /// The next result that can go on outwards.
  func takeReadyResult() -> ResultPart? { nil }
  /// Tells it whether a result is wanted outside of it.
  ///
  /// - Returns: As ``awaitsResult``.
  func wantsResult(_ isWanted: Bool) -> Bool { false }
  /// Whether it should receive a result: whatever is wanted outside of it, its body asks for one.
  final var awaitsResult: Bool { self.wantsResult(false) }

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
