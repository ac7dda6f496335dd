/// What a stage asks of the chain that it stands in.
protocol StreamStageOwner<RequestMessage, ResponseMessage>: AnyObject, Sendable {
  associatedtype RequestMessage: Sendable
  associatedtype ResponseMessage: Sendable

  var call: Call { get }
  /// Something can move.
  func pump()
  /// The stage gives results in place of its own and of what is inside, which is given up.
  func answer(at stage: Int, with results: [StreamResult<ResponseMessage>])
  /// The stage has ended the stream; what is inside is given up, and no request message is of use to it.
  func closeInside(of stage: Int)
  /// Starts a new attempt at the first stage, if that is still possible. The stage asks for it.
  func retry(at stage: Int, _ request: HTTPRequest<Void>?, after delay: Duration) -> Bool
}
