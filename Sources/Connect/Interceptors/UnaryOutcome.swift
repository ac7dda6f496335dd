/// What goes up through a chain: can be made from an error.
protocol UnaryOutcome: Sendable {
  init(failure: ConnectError)
  var error: ConnectError? { get }
  /// Makes code and error agree, whatever a hook has made of them: neither is lost.
  mutating func makeConsistent()
}

extension HTTPResponse: UnaryOutcome {
  init(failure: ConnectError) { self.init(error: failure) }

  mutating func makeConsistent() {
    if let code = self.error?.code {
      self.code = code
    } else if self.code != .ok {
      self.error = ConnectError(code: self.code, metadata: self.trailers, httpStatus: self.httpStatus)
    }
  }
}

extension ResponseMessage: UnaryOutcome {
  init(failure: ConnectError) { self.init(error: failure) }
}
