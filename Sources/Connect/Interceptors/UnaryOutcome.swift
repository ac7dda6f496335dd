/// What goes up through a chain: can be made from an error.
protocol UnaryOutcome: Sendable {
  init(failure: ConnectError)
  /// The same outcome with a code and an error that agree, whatever a hook has made of them: neither is lost.
  var consistent: Self { get }
}

extension HTTPResponse: UnaryOutcome {
  init(failure: ConnectError) { self.init(error: failure) }

  var consistent: HTTPResponse {
    var response = self
    if let error = self.error {
      response.code = error.code
    } else if self.code != .ok {
      response.error = ConnectError(code: self.code, metadata: self.trailers, httpStatus: self.httpStatus)
    }
    return response
  }
}

extension ResponseMessage: UnaryOutcome {
  init(failure: ConnectError) { self.init(error: failure) }

  var consistent: ResponseMessage {
    var response = self
    if let error = self.error {
      response.code = error.code
    } else if self.code != .ok {
      response.result = .failure(ConnectError(code: self.code, metadata: self.trailers))
    }
    return response
  }
}
