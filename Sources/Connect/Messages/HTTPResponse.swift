public import NIOCore

/// A unary response as byte hooks see it: after the wire protocol was decoded, before the message is decoded.
///
/// Copying a response copies two references. Changing a copy does not change the original.
public struct HTTPResponse: Sendable {
  private var head: Head
  /// The message's bytes; empty if there is an error, except in calls with a ``ResponseParser``.
  public var message: ByteBuffer

  /// The code of ``error``; ``Code/ok`` if there is no error. Setting another code gives a response without an error an
  /// error with this code. It does nothing to a response that has an error.
  public var code: Code {
    get { self.head.error?.code ?? .ok }
    set {
      if self.head.error == nil {
        self.error = newValue.error(metadata: self.trailers, httpStatus: self.httpStatus)
      }
    }
  }

  /// The response's metadata, without the trailers of the wire protocol.
  public var headers: Headers {
    get { self.head.headers }
    _modify {
      let head = self.uniqueHead
      var headers = head.headers
      head.headers = Headers()
      defer { head.headers = headers }
      yield &headers
    }
  }

  /// The response's trailers, whatever the wire protocol puts them into: in the Connect protocol they are headers
  /// with the prefix `trailer-`, which is removed here.
  public var trailers: Headers {
    get { self.head.trailers }
    _modify {
      let head = self.uniqueHead
      var trailers = head.trailers
      head.trailers = Headers()
      defer { head.trailers = trailers }
      yield &trailers
    }
  }

  /// Nil for a response that succeeded. A hook that sets it to nil turns a failure into a success with ``message``.
  public var error: ConnectError? {
    get { self.head.error }
    set { self.uniqueHead.error = newValue }
  }

  /// The HTTP status, if a response arrived at all.
  public var httpStatus: Int? {
    get { self.head.httpStatus }
    set { self.uniqueHead.httpStatus = newValue }
  }

  /// The header fields exactly as they arrived.
  public var httpHeaders: Headers {
    get { self.head.httpHeaders }
    _modify {
      let head = self.uniqueHead
      var httpHeaders = head.httpHeaders
      head.httpHeaders = Headers()
      defer { head.httpHeaders = httpHeaders }
      yield &httpHeaders
    }
  }

  /// The request that was sent for this response, without its message. It has the changes of all interceptors, and not what
  /// the wire protocol adds. Nil for a response that did not come from the network, and for one created by `init`.
  public var request: HTTPRequest<Void>? {
    get { self.head.request.map { HTTPRequest(head: $0) } }
    set { self.uniqueHead.request = newValue?.head }
  }

  /// A response that a hook answers with, or that a test makes.
  ///
  /// - Parameters:
  ///   - code: Ignored if there is an `error`. Another code than ``Code/ok`` creates an error with this code.
  ///   - headers: See ``headers``; empty by default.
  ///   - message: See ``message``; empty by default.
  ///   - trailers: See ``trailers``. An error that `code` creates has them as its metadata.
  ///   - error: See ``error``; nil if only `code` decides.
  ///   - httpStatus: See ``httpStatus``; nil by default. An error that `code` creates has it, too.
  ///   - httpHeaders: See ``httpHeaders``; empty by default. They are not derived from `headers`.
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
      error: error ?? code.error(metadata: trailers, httpStatus: httpStatus),
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
    request: RequestHead?,
    isParsed: Bool = false
  ) {
    self.head = Head(
      headers: headers,
      trailers: trailers,
      error: error,
      httpStatus: httpStatus,
      httpHeaders: httpHeaders,
      request: request,
      isParsed: isParsed
    )
    self.message = message
  }

  /// Whether a ``ResponseParser`` reads the body although there is an error.
  package var isParsed: Bool { self.head.isParsed }

  /// A response that is an error found by the client.
  public init(error: ConnectError) {
    self.init(
      trailers: error.metadata,
      error: error,
      httpStatus: error.httpStatus
    )
  }

  /// The head, for changes. It is copied first if other responses share it.
  private var uniqueHead: Head {
    mutating get {
      if !isKnownUniquelyReferenced(&self.head) { self.head = Head(copying: self.head) }
      return self.head
    }
  }

  /// `@unchecked Sendable`: only ``HTTPResponse`` changes it, while it holds the only reference and has exclusive access to
  /// itself. No access to a variable lasts while other code runs, as in ``RequestHead``.
  private final class Head: @unchecked Sendable {
    var headers: Headers
    var trailers: Headers
    var error: ConnectError?
    var httpStatus: Int?
    var httpHeaders: Headers
    var request: RequestHead?
    let isParsed: Bool

    init(
      headers: Headers,
      trailers: Headers,
      error: ConnectError?,
      httpStatus: Int?,
      httpHeaders: Headers,
      request: RequestHead?,
      isParsed: Bool
    ) {
      self.headers = headers
      self.trailers = trailers
      self.error = error
      self.httpStatus = httpStatus
      self.httpHeaders = httpHeaders
      self.request = request
      self.isParsed = isParsed
    }

    convenience init(copying other: Head) {
      self.init(
        headers: other.headers,
        trailers: other.trailers,
        error: other.error,
        httpStatus: other.httpStatus,
        httpHeaders: other.httpHeaders,
        request: other.request,
        isParsed: other.isParsed
      )
    }
  }
}

extension HTTPResponse {
  /// Nil if there is a message to decode.
  var errorInPlaceOfMessage: ConnectError? {
    if let error = self.error { return error }
    guard self.httpStatus == 304, self.message.readableBytes == 0 else { return nil }
    return ConnectError(
      code: .unknown,
      message: "\(HTTPStatus.describe(304)), and no interceptor had a response to give in its place",
      metadata: self.headers,
      httpStatus: 304
    )
  }
}
