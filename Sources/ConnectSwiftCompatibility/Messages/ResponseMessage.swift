public import Connect

/// The outcome of a unary call: a message or an error, with the metadata around it.
public struct ResponseMessage<Output: ProtobufMessage>: Sendable {
  /// The same outcome in this library's type.
  public let native: Connect::ResponseMessage<Output>

  /// The same outcome in connect-swift's form.
  public init(_ native: Connect::ResponseMessage<Output>) {
    self.native = native
  }

  /// - Parameters:
  ///   - code: For a `result` without error: one that is not `ok` makes it an error.
  ///   - headers: The metadata in front of the message.
  ///   - result: The message or the error.
  ///   - trailers: Metadata behind the message.
  public init(
    code: Code = .ok,
    headers: Headers = [:],
    result: Result<Output, ConnectError>,
    trailers: Trailers = [:]
  ) {
    self.native = Connect::ResponseMessage(
      code: code,
      headers: Connect::Headers(headers),
      result: result.mapError(\.native),
      trailers: Connect::Headers(trailers)
    )
  }

  /// That of the error; `ok` if there is none.
  public var code: Code { self.native.code }
  /// The metadata, names in lower case.
  public var headers: Headers { self.native.headers.dictionary }
  /// The message or the error.
  public var result: Result<Output, ConnectError> { self.native.result.mapError { ConnectError($0) } }
  /// Metadata behind the message, names in lower case.
  public var trailers: Trailers { self.native.trailers.dictionary }
  /// The error, or nil if the call succeeded.
  public var error: ConnectError? { self.native.error.map { ConnectError($0) } }
  /// The message, or nil if the call failed.
  public var message: Output? { self.native.message }
}
