public import NIOCore

/// A unary response as byte hooks see it: after the wire protocol was decoded, before the message is.
public struct HTTPResponse: Sendable {
  public var code: Code
  /// The response's metadata, without what belongs to the wire protocol's trailers.
  public var headers: Headers
  /// The message's bytes; empty if there is an error.
  public var message: ByteBuffer
  public var trailers: Headers
  /// Set if and only if `code` is not ``Code/ok``.
  public var error: ConnectError?
  /// The HTTP status, if a response arrived at all.
  public var httpStatus: Int?
  /// The header fields exactly as they arrived.
  public var httpHeaders: Headers

  public init(
    code: Code = .ok,
    headers: Headers = Headers(),
    message: ByteBuffer = ByteBuffer(),
    trailers: Headers = Headers(),
    error: ConnectError? = nil,
    httpStatus: Int? = nil,
    httpHeaders: Headers = Headers()
  ) {
    self.code = code
    self.headers = headers
    self.message = message
    self.trailers = trailers
    self.error = error
    self.httpStatus = httpStatus
    self.httpHeaders = httpHeaders
  }

  /// A response that is an error found by the client.
  public init(error: ConnectError) {
    self.init(
      code: error.code,
      trailers: error.metadata,
      error: error,
      httpStatus: error.httpStatus
    )
  }
}
