/// The outcome of a unary or client-stream call: a message or an error, with the metadata around it.
///
/// Copying a response copies a few references. Changing a copy does not change the original.
public struct ResponseMessage<Output: Sendable>: Sendable {
  @usableFromInline package var erased: AnyResponse

  @inlinable
  @inline(__always)
  package init(_ erased: AnyResponse) {
    self.erased = erased
  }

  /// The code of the error; ``Code/ok`` if there is no error. Setting another code gives a response without an error
  /// an error with this code. It does nothing to a response that has an error.
  public var code: Code {
    get { self.error?.code ?? .ok }
    set {
      if self.error == nil, let error = newValue.error(metadata: self.trailers) {
        self.erased.outcome = .error(error)
      }
    }
  }

  /// The response's metadata, without the trailers.
  public var headers: Headers {
    get { self.erased.headers }
    _modify { yield &self.erased.headers }
  }

  /// The response's trailers, whatever the wire protocol puts them into; empty if none arrived.
  public var trailers: Headers {
    get { self.erased.trailers }
    _modify { yield &self.erased.trailers }
  }

  /// The message, or the error that the call failed with.
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

  /// A response that a hook answers with, or that a test makes.
  ///
  /// - Parameters:
  ///   - code: Ignored if `result` is an error. Another code than ``Code/ok`` creates an error with this code.
  ///   - headers: See ``headers``; empty by default.
  ///   - result: See ``result``. An error that `code` creates replaces the message.
  ///   - trailers: See ``trailers``. An error that `code` creates has them as its metadata.
  public init(
    code: Code = .ok,
    headers: Headers = Headers(),
    result: Result<Output, ConnectError>,
    trailers: Headers = Headers()
  ) {
    self.init(AnyResponse(Self.outcome(result), headers: headers, trailers: trailers))
    self.code = code
  }

  /// A response that succeeded.
  public init(message: Output, headers: Headers = Headers(), trailers: Headers = Headers()) {
    self.init(AnyResponse(.message(MessageBox(message)), headers: headers, trailers: trailers))
  }

  /// A response that failed. The trailers are the error's ``ConnectError/metadata``.
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
