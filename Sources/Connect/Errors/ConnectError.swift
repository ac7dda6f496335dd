/// The one error of the library: whatever fails, the caller gets this, once.
///
/// It describes an error that the server sent as well as one that the client found (a timeout, a refused
/// connection, bytes that do not decode). `code` says what to do about it, `message` is for people.
///
/// A copy costs one reference; what a copy changes is its own.
public struct ConnectError: Swift.Error, Sendable {
  private var storage: Storage

  /// Whether this is a copy of the other, and neither was changed since.
  func isIdentical(to other: ConnectError) -> Bool { self.storage === other.storage }

  /// What to do about the error. Never ``Code/ok``, which no error has: it becomes ``Code/unknown`` where it is given or set.
  public var code: Code {
    get { self.storage.code }
    set { self.unique.code = newValue.ofError }
  }

  /// An explanation for people; may be absent when the server sent none.
  public var message: String? {
    get { self.storage.message }
    _modify { yield &self.unique.message }
  }

  /// The cause, where there is one: the error of a codec, a socket, TLS, or user code.
  public var exception: (any Swift.Error)? {
    get { self.storage.exception }
    set { self.unique.exception = newValue }
  }

  /// Typed details that the server attached; see ``unpackedDetails(_:)``.
  public var details: [Detail] {
    get { self.storage.details }
    _modify { yield &self.unique.details }
  }

  /// The response's headers and trailers, as far as they arrived.
  public var metadata: Headers {
    get { self.storage.metadata }
    _modify { yield &self.unique.metadata }
  }

  /// The HTTP status of the response, if one arrived.
  public var httpStatus: Int? {
    get { self.storage.httpStatus }
    set { self.unique.httpStatus = newValue }
  }

  /// Whether the request of the attempt that failed is known not to have left the interceptors: one of them failed it, or
  /// the call ended while one held it. Then the error says nothing about the server. Earlier attempts of the call may have
  /// been sent.
  public var isUnsent: Bool {
    get { self.storage.isUnsent }
    set { self.unique.isUnsent = newValue }
  }

  /// Whether the transport has failed: there was no connection, or it was lost before the response had ended. The server
  /// may have done what it was asked for, or not.
  public var isConnectionLost: Bool {
    get { self.storage.isConnectionLost }
    set { self.unique.isConnectionLost = newValue }
  }

  /// What the error is about, as long as the message does not say to which request it belongs.
  package var unnamed: Unnamed? {
    get { self.storage.unnamed }
    set { self.unique.unnamed = newValue }
  }

  /// - Parameter code: ``Code/ok``, which no error has, becomes ``Code/unknown``.
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

  /// What may be changed, since nobody else has it.
  private var unique: Storage {
    mutating get {
      if !isKnownUniquelyReferenced(&self.storage) { self.storage = Storage(copying: self.storage) }
      return self.storage
    }
  }

  /// `@unchecked Sendable`: changed only where the error that is changed holds the one reference.
  private final class Storage: @unchecked Sendable {
    var code: Code
    var message: String?
    var exception: (any Swift.Error)?
    var details: [Detail] = []
    var metadata = Headers()
    var httpStatus: Int?
    var isUnsent = false
    var isConnectionLost = false
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
      self.isConnectionLost = other.isConnectionLost
      self.unnamed = other.unnamed
    }
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

extension ConnectError {
  /// The error that a code stands for which came without one; nil for ``Code/ok``.
  init?(_ code: Code, metadata: Headers, httpStatus: Int? = nil) {
    guard code != .ok else { return nil }
    self.init(code: code, metadata: metadata, httpStatus: httpStatus)
  }
}

extension Code {
  /// The code as an error's: the one that says nothing instead of ``ok``.
  fileprivate var ofError: Code { self == .ok ? .unknown : self }
}
