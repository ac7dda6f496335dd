/// What goes up through a chain: can be made from an error.
protocol UnaryOutcome: Sendable {
  init(failure: ConnectError)
  var error: ConnectError? { get }
}

extension HTTPResponse: UnaryOutcome {
  init(failure: ConnectError) { self.init(error: failure) }
}

extension ResponseMessage: UnaryOutcome {
  init(failure: ConnectError) { self.init(error: failure) }
}
