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

  /// That of the error; ``Code/ok`` if there is none. To set another makes an error of a response that has none, and does nothing
  /// to one that has.
  public var code: Code {
    get { self.error?.code ?? .ok }
    set {
      if self.error == nil, let error = ConnectError(newValue, metadata: self.trailers) {
        self.outcome = .error(error)
      }
    }
  }

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

  private init(headers: Headers, outcome: Outcome, trailers: Headers) {
    self.headers = headers
    self.outcome = outcome
    self.trailers = trailers
  }

  /// - Parameter code: For a `result` without error: one that is not ``Code/ok`` makes it an error.
  public init(
    code: Code = .ok,
    headers: Headers = Headers(),
    result: Result<Output, ConnectError>,
    trailers: Headers = Headers()
  ) {
    self.init(headers: headers, outcome: Outcome(result), trailers: trailers)
    self.code = code
  }

  public init(message: Output, headers: Headers = Headers(), trailers: Headers = Headers()) {
    self.init(headers: headers, outcome: .message(MessageBox(message)), trailers: trailers)
  }

  public init(error: ConnectError, headers: Headers = Headers()) {
    self.init(error: error, headers: headers, trailers: error.metadata)
  }

  init(error: ConnectError, headers: Headers, trailers: Headers) {
    self.init(headers: headers, outcome: .error(error), trailers: trailers)
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
