/// The outcome of a unary or client-stream call: a message or an error, with the metadata around it.
public struct ResponseMessage<Output: Sendable>: Sendable {
  public var code: Code
  public var headers: Headers
  public var trailers: Headers
  public var result: Result<Output, ConnectError>

  @inline(__always)
  public init(
    code: Code = .ok,
    headers: Headers = Headers(),
    result: Result<Output, ConnectError>,
    trailers: Headers = Headers()
  ) {
    self.code = code
    self.headers = headers
    self.result = result
    self.trailers = trailers
  }

  @inline(__always)
  public init(message: Output, headers: Headers = Headers(), trailers: Headers = Headers()) {
    self.init(headers: headers, result: .success(message), trailers: trailers)
  }

  public init(error: ConnectError, headers: Headers = Headers()) {
    self.init(code: error.code, headers: headers, result: .failure(error), trailers: error.metadata)
  }

  /// The message, or nil if the call failed.
  public var message: Output? {
    if case .success(let message) = self.result { message } else { nil }
  }

  /// The error, or nil if the call succeeded.
  public var error: ConnectError? {
    if case .failure(let error) = self.result { error } else { nil }
  }

  /// The message.
  ///
  /// - Throws: ``ConnectError`` if the call failed.
  public func get() throws(ConnectError) -> Output {
    try self.result.get()
  }
}
