/// The one error of the library: whatever fails, the caller gets this, once.
///
/// It describes an error that the server sent as well as one that the client found (a timeout, a refused
/// connection, bytes that do not decode). `code` says what to do about it, `message` is for people.
public struct ConnectError: Swift.Error, Sendable {
  public var code: Code
  /// An explanation for people; may be absent when the server sent none.
  public var message: String?
  /// The cause, where there is one: the error of a codec, a socket, TLS, or user code.
  public var exception: (any Swift.Error)?
  /// Typed details that the server attached; see ``unpackedDetails(_:)``.
  public var details: [Detail]
  /// The response's headers and trailers, as far as they arrived.
  public var metadata: Headers
  /// The HTTP status of the response, if one arrived.
  public var httpStatus: Int?
  /// Whether the request of the attempt that failed is known not to have left the interceptors: one of them failed it, or
  /// the call ended while one held it. Then the error says nothing about the server. Earlier attempts of the call may have
  /// been sent.
  public var isUnsent = false

  public init(
    code: Code,
    message: String? = nil,
    exception: (any Swift.Error)? = nil,
    details: [Detail] = [],
    metadata: Headers = Headers(),
    httpStatus: Int? = nil
  ) {
    self.code = code
    self.message = message
    self.exception = exception
    self.details = details
    self.metadata = metadata
    self.httpStatus = httpStatus
  }
}

extension ConnectError: CustomStringConvertible {
  public var description: String {
    var text = self.code.name
    if let message = self.message, !message.isEmpty { text += ": \(message)" }
    if let exception = self.exception { text += " (\(exception))" }
    return text
  }
}

extension ConnectError {
  /// `error` itself if it is one of ours; `canceled` for a `CancellationError`; else `code` with the error as
  /// the cause.
  public init(_ error: any Swift.Error, code: Code = .unknown) {
    switch error {
    case let error as ConnectError:
      self = error
    case is CancellationError:
      self.init(code: .canceled, message: "the call was cancelled", exception: error)
    default:
      self.init(code: code, message: String(describing: error), exception: error)
    }
  }
}
