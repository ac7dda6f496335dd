/// The outcome of a unary or client-stream call: a message or an error, with the metadata around it.
///
/// A copy costs no more than some references; what a copy changes is its own.
public struct ResponseMessage<Output: Sendable>: Sendable {
  @usableFromInline package var erased: AnyResponse

  @inlinable
  @inline(__always)
  package init(_ erased: AnyResponse) {
    self.erased = erased
  }

  /// That of the error; ``Code/ok`` if there is none. To set another makes an error of a response that has none, and does nothing
  /// to one that has.
  public var code: Code {
    get { self.error?.code ?? .ok }
    set {
      if self.error == nil, let error = newValue.error(metadata: self.trailers) {
        self.erased.outcome = .error(error)
      }
    }
  }

  public var headers: Headers {
    get { self.erased.headers }
    _modify { yield &self.erased.headers }
  }

  public var trailers: Headers {
    get { self.erased.trailers }
    _modify { yield &self.erased.trailers }
  }

  public var result: Result<Output, ConnectError> {
    get {
      switch self.erased.outcome {
      case .message(let message): .success(MessageBox<Output>.of(message).message)
      case .error(let error): .failure(error)
      }
    }
    set { self.erased.outcome = Self.outcome(newValue) }
  }

  private static func outcome(_ result: Result<Output, ConnectError>) -> AnyResponse.Outcome {
    switch result {
    case .success(let message): .message(MessageBox(message))
    case .failure(let error): .error(error)
    }
  }

  /// - Parameter code: For a `result` without error: one that is not ``Code/ok`` makes it an error.
  public init(
    code: Code = .ok,
    headers: Headers = Headers(),
    result: Result<Output, ConnectError>,
    trailers: Headers = Headers()
  ) {
    self.init(AnyResponse(Self.outcome(result), headers: headers, trailers: trailers))
    self.code = code
  }

  public init(message: Output, headers: Headers = Headers(), trailers: Headers = Headers()) {
    self.init(AnyResponse(.message(MessageBox(message)), headers: headers, trailers: trailers))
  }

  public init(error: ConnectError, headers: Headers = Headers()) {
    self.init(AnyResponse(.error(error), headers: headers, trailers: error.metadata))
  }

  /// The message, or nil if the call failed.
  public var message: Output? {
    if case .message(let message) = self.erased.outcome {
      MessageBox<Output>.of(message).message
    } else {
      nil
    }
  }

  /// The error, or nil if the call succeeded.
  public var error: ConnectError? {
    self.erased.error
  }

  /// The message.
  ///
  /// - Throws: ``ConnectError`` if the call failed.
  public func get() throws(ConnectError) -> Output {
    switch self.erased.outcome {
    case .message(let message): return MessageBox<Output>.of(message).message
    case .error(let error): throw error
    }
  }
}
