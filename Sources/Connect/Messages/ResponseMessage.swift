/// The outcome of a unary or client-stream call: a message or an error, with the metadata around it.
///
/// A copy costs no more than some references; what a copy changes is its own.
public struct ResponseMessage<Output: Sendable>: Sendable {
  private enum Outcome {
    case message(MessageBox<Output>)
    case error(ConnectError)

    init(_ result: Result<Output, ConnectError>) {
      switch result {
      case .success(let message): self = .message(MessageBox(message))
      case .failure(let error): self = .error(error)
      }
    }
  }

  public var code: Code
  public var headers: Headers
  public var trailers: Headers
  private var outcome: Outcome

  public var result: Result<Output, ConnectError> {
    get {
      switch self.outcome {
      case .message(let box): .success(box.message)
      case .error(let error): .failure(error)
      }
    }
    set { self.outcome = Outcome(newValue) }
  }

  private init(code: Code, headers: Headers, outcome: Outcome, trailers: Headers) {
    self.code = code
    self.headers = headers
    self.outcome = outcome
    self.trailers = trailers
  }

  public init(
    code: Code = .ok,
    headers: Headers = Headers(),
    result: Result<Output, ConnectError>,
    trailers: Headers = Headers()
  ) {
    self.init(code: code, headers: headers, outcome: Outcome(result), trailers: trailers)
  }

  public init(message: Output, headers: Headers = Headers(), trailers: Headers = Headers()) {
    self.init(code: .ok, headers: headers, outcome: .message(MessageBox(message)), trailers: trailers)
  }

  public init(error: ConnectError, headers: Headers = Headers()) {
    self.init(error: error, headers: headers, trailers: error.metadata)
  }

  init(error: ConnectError, headers: Headers, trailers: Headers) {
    self.init(code: error.code, headers: headers, outcome: .error(error), trailers: trailers)
  }

  init(_ collected: SingleMessage<Output>) {
    switch collected.result {
    case .success(let message):
      self.init(message: message, headers: collected.headers, trailers: collected.trailers)
    case .failure(let error):
      self.init(error: error, headers: collected.headers, trailers: collected.trailers)
    }
  }

  /// The message, or nil if the call failed.
  public var message: Output? {
    if case .message(let box) = self.outcome { box.message } else { nil }
  }

  /// The error, or nil if the call succeeded.
  public var error: ConnectError? {
    if case .error(let error) = self.outcome { error } else { nil }
  }

  /// Takes over what call hooks have made of the call's outcome.
  mutating func take(_ outcome: CallOutcome) {
    self.code = outcome.code
    self.headers = outcome.headers
    self.trailers = outcome.trailers
    if let error = outcome.error { self.outcome = .error(error) }
  }

  /// Makes code and error agree, whatever a hook has made of them: neither is lost.
  mutating func makeConsistent() {
    if let error = self.error {
      self.code = error.code
    } else if self.code != .ok {
      self.outcome = .error(ConnectError(code: self.code, metadata: self.trailers))
    }
  }

  /// The message.
  ///
  /// - Throws: ``ConnectError`` if the call failed.
  public func get() throws(ConnectError) -> Output {
    switch self.outcome {
    case .message(let box): return box.message
    case .error(let error): throw error
    }
  }
}
