/// The only error type of the library. A call that fails reports it to the caller exactly once.
///
/// It describes errors that the server sent, and errors that the client found: a timeout, a refused connection, bytes that
/// do not decode. `code` says what to do about the error; `message` is for people.
///
/// Copying an error copies one reference. Changing a copy does not change the original.
public struct ConnectError: Swift.Error, Sendable {
  private var storage: Storage

  /// What to do about the error. Never ``Code/ok``: setting it sets ``Code/unknown``.
  public var code: Code {
    get { self.storage.code }
    set { self.unique.code = newValue.ofError }
  }

  /// An explanation for people; may be absent when the server sent none.
  public var message: String? {
    get { self.storage.message }
    set { self.unique.message = newValue }
  }

  /// The cause, where there is one: the error of a codec, a socket, TLS, or user code.
  public var exception: (any Swift.Error)? {
    get { self.storage.exception }
    set { self.unique.exception = newValue }
  }

  /// Typed details that the server attached; see ``unpackedDetails(_:)``.
  public var details: [Detail] {
    get { self.storage.details }
    _modify {
      let storage = self.unique
      var details = storage.details
      storage.details = []
      defer { storage.details = details }
      yield &details
    }
  }

  /// The response's headers and trailers, as far as they arrived.
  public var metadata: Headers {
    get { self.storage.metadata }
    _modify {
      let storage = self.unique
      var metadata = storage.metadata
      storage.metadata = Headers()
      defer { storage.metadata = metadata }
      yield &metadata
    }
  }

  /// The HTTP status of the response, if one arrived.
  public var httpStatus: Int? {
    get { self.storage.httpStatus }
    set { self.unique.httpStatus = newValue }
  }

  /// Whether the request of the failed attempt was not sent, for a reason that says nothing about the health of the server. An
  /// interceptor failed the request, or the call ended while an interceptor held it, or the server's certificate does not
  /// name the host that the call asks for (`CallOptions.authority`), or the balancing policy dropped the call. Earlier
  /// attempts of the call may have been sent.
  public var isUnsent: Bool {
    get { self.storage.isUnsent }
    set { self.unique.isUnsent = newValue }
  }

  /// Whether another attempt would fail in the same way, so that no interceptor repeats the call. Examples: a message over
  /// a limit of the client's, a certificate that is not accepted, a name that does not exist, a setting that cannot be
  /// used, a peer that speaks another protocol.
  ///
  /// A call that waits for a connection (`waitForReady`) goes on waiting all the same, as gRPC does: the server may be
  /// mended before its deadline. Not so where the client can never connect again: see ``Unnamed/ended``.
  package var isFinal: Bool {
    get { self.storage.isFinal }
    set { self.unique.isFinal = newValue }
  }

  /// Whether the transport failed: there was no connection, or it was lost before the response had ended. The server may
  /// have processed the request.
  public var isConnectionLost: Bool {
    get { self.storage.isConnectionLost }
    set { self.unique.isConnectionLost = newValue }
  }

  /// Whether the body of an error of the Connect protocol names the code. Else a code may be derived from the HTTP status,
  /// which any web server sends.
  package var hasConnectCode: Bool {
    get { self.storage.hasConnectCode }
    set { self.unique.hasConnectCode = newValue }
  }

  /// The subject of an error whose message does not name the request yet.
  package var unnamed: Unnamed? {
    get { self.storage.unnamed }
    set { self.unique.unnamed = newValue }
  }

  /// An error that an interceptor, a codec or a transport reports. Only the code is required.
  ///
  /// - Parameters:
  ///   - code: ``Code/ok`` becomes ``Code/unknown``.
  ///   - message: See ``message``; nil for none.
  ///   - exception: See ``exception``; nil for none.
  ///   - details: See ``details``; none by default.
  ///   - metadata: See ``metadata``; empty by default.
  ///   - httpStatus: See ``httpStatus``; nil if no response arrived.
  public init(
    code: Code,
    message: String? = nil,
    exception: (any Swift.Error)? = nil,
    details: [Detail] = [],
    metadata: Headers = Headers(),
    httpStatus: Int? = nil
  ) {
    self.storage = Storage(code: code.ofError, message: message, exception: exception)
    self.storage.details = details
    self.storage.metadata = metadata
    self.storage.httpStatus = httpStatus
  }

  /// The storage, for changes. It is copied first if other errors share it.
  private var unique: Storage {
    mutating get {
      if !isKnownUniquelyReferenced(&self.storage) { self.storage = Storage(copying: self.storage) }
      return self.storage
    }
  }

  /// `@unchecked Sendable`: only ``ConnectError`` changes it, while it holds the only reference and has exclusive access to
  /// itself. No access to a variable lasts while other code runs, so that the compiler needs no exclusivity checks at run
  /// time.
  private final class Storage: @unchecked Sendable {
    var code: Code
    var message: String?
    var exception: (any Swift.Error)?
    var details: [Detail] = []
    var metadata = Headers()
    var httpStatus: Int?
    var isUnsent = false
    var isFinal = false
    var isConnectionLost = false
    var hasConnectCode = false
    var unnamed: Unnamed?

    init(code: Code, message: String?, exception: (any Swift.Error)?) {
      self.code = code
      self.message = message
      self.exception = exception
    }

    convenience init(copying other: Storage) {
      self.init(code: other.code, message: other.message, exception: other.exception)
      self.details = other.details
      self.metadata = other.metadata
      self.httpStatus = other.httpStatus
      self.isUnsent = other.isUnsent
      self.isFinal = other.isFinal
      self.isConnectionLost = other.isConnectionLost
      self.hasConnectCode = other.hasConnectCode
      self.unnamed = other.unnamed
    }
  }
}

extension ConnectError {
  /// `resource_exhausted`, since a message of the call is over a limit of the client's.
  static func overLimit(_ message: String) -> ConnectError {
    ConnectError(code: .resourceExhausted, message: message).asFinal
  }

  /// The same error, with ``isFinal``.
  package var asFinal: ConnectError {
    var error = self
    error.isFinal = true
    return error
  }

  /// `error` itself if it is a ``ConnectError``; `canceled` for a `CancellationError`; else `code` with `error` as the
  /// cause.
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

extension Code {
  /// An error with this code, for a result that has a code and no error; nil for ``ok``.
  func error(metadata: Headers, httpStatus: Int? = nil) -> ConnectError? {
    guard self != .ok else { return nil }
    return ConnectError(code: self, metadata: metadata, httpStatus: httpStatus)
  }

  /// ``unknown`` instead of ``ok``, which no error has.
  fileprivate var ofError: Code { self == .ok ? .unknown : self }
}
