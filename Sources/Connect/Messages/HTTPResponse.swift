public import NIOCore

/// A unary response as byte hooks see it: after the wire protocol was decoded, before the message is.
///
/// A copy costs no more than a reference and the message; what a copy changes is its own.
public struct HTTPResponse: Sendable {
  private var head: Head
  /// The message's bytes; empty if there is an error.
  public var message: ByteBuffer

  /// That of ``error``; ``Code/ok`` if there is none. To set another makes an error of a response that has none, and does nothing
  /// to one that has.
  public var code: Code {
    get { self.head.error?.code ?? .ok }
    set {
      if self.head.error == nil {
        self.error = ConnectError(newValue, metadata: self.trailers, httpStatus: self.httpStatus)
      }
    }
  }

  /// The response's metadata, without what belongs to the wire protocol's trailers.
  public var headers: Headers {
    get { self.head.headers }
    _modify { yield &self.uniqueHead.headers }
  }

  public var trailers: Headers {
    get { self.head.trailers }
    _modify { yield &self.uniqueHead.trailers }
  }

  /// Nil for a response that succeeded. A hook that sets it to nil makes of a failure a success with what is in
  /// ``message``.
  public var error: ConnectError? {
    get { self.head.error }
    _modify { yield &self.uniqueHead.error }
  }

  /// The HTTP status, if a response arrived at all.
  public var httpStatus: Int? {
    get { self.head.httpStatus }
    set { self.uniqueHead.httpStatus = newValue }
  }

  /// The header fields exactly as they arrived.
  public var httpHeaders: Headers {
    get { self.head.httpHeaders }
    _modify { yield &self.uniqueHead.httpHeaders }
  }

  /// The request that went to the network for this response, without its message, as it left the last byte hook: with all
  /// that interceptors have made of it, and without what the wire protocol adds. Nil for a response that did not come from
  /// the network. A copy of a response keeps it; a response made by `init` has none.
  public var request: HTTPRequest<Void>? {
    get { self.head.request.map { HTTPRequest(head: $0) } }
    set { self.uniqueHead.request = newValue?.head }
  }

  /// - Parameter code: For a response without `error`: one that is not ``Code/ok`` makes it an error.
  public init(
    code: Code = .ok,
    headers: Headers = Headers(),
    message: ByteBuffer = ByteBuffer(),
    trailers: Headers = Headers(),
    error: ConnectError? = nil,
    httpStatus: Int? = nil,
    httpHeaders: Headers = Headers()
  ) {
    self.init(
      headers: headers,
      message: message,
      trailers: trailers,
      error: error ?? ConnectError(code, metadata: trailers, httpStatus: httpStatus),
      httpStatus: httpStatus,
      httpHeaders: httpHeaders,
      request: nil
    )
  }

  init(
    headers: Headers,
    message: ByteBuffer,
    trailers: Headers,
    error: ConnectError?,
    httpStatus: Int?,
    httpHeaders: Headers,
    request: RequestHead?
  ) {
    self.head = Head(
      headers: headers,
      trailers: trailers,
      error: error,
      httpStatus: httpStatus,
      httpHeaders: httpHeaders,
      request: request
    )
    self.message = message
  }

  /// A response that is an error found by the client.
  public init(error: ConnectError) {
    self.init(
      trailers: error.metadata,
      error: error,
      httpStatus: error.httpStatus
    )
  }

  /// What may be changed, since nobody else has it.
  private var uniqueHead: Head {
    mutating get {
      if !isKnownUniquelyReferenced(&self.head) { self.head = Head(copying: self.head) }
      return self.head
    }
  }

  /// `@unchecked Sendable`: changed only where the response that is changed holds the one reference, and under its exclusive
  /// access.
  private final class Head: @unchecked Sendable {
    @exclusivity(unchecked) var headers: Headers
    @exclusivity(unchecked) var trailers: Headers
    @exclusivity(unchecked) var error: ConnectError?
    @exclusivity(unchecked) var httpStatus: Int?
    @exclusivity(unchecked) var httpHeaders: Headers
    @exclusivity(unchecked) var request: RequestHead?

    init(
      headers: Headers,
      trailers: Headers,
      error: ConnectError?,
      httpStatus: Int?,
      httpHeaders: Headers,
      request: RequestHead?
    ) {
      self.headers = headers
      self.trailers = trailers
      self.error = error
      self.httpStatus = httpStatus
      self.httpHeaders = httpHeaders
      self.request = request
    }

    convenience init(copying other: Head) {
      self.init(
        headers: other.headers,
        trailers: other.trailers,
        error: other.error,
        httpStatus: other.httpStatus,
        httpHeaders: other.httpHeaders,
        request: other.request
      )
    }
  }
}
