/// How a call ends for its caller, as call hooks see it: all of a response but its messages.
///
/// A copy costs one reference; what a copy changes is its own.
public struct CallOutcome: Sendable {
  /// What the call's last attempt was on the wire. Of attempts that hedge: the one that has decided the outcome.
  public struct Exchange: Sendable, Hashable {
    /// Nil if no response has arrived.
    public var httpStatus: Int?
    /// Bytes of the request's body.
    public var requestBodyBytes: Int
    /// Bytes of the response's body as they arrived.
    public var responseBodyBytes: Int
    /// The peer's address as text; nil if none was reached, or if it is not known.
    public var remoteAddress: String?

    public init(
      httpStatus: Int? = nil,
      requestBodyBytes: Int = 0,
      responseBodyBytes: Int = 0,
      remoteAddress: String? = nil
    ) {
      self.httpStatus = httpStatus
      self.requestBodyBytes = requestBodyBytes
      self.responseBodyBytes = responseBodyBytes
      self.remoteAddress = remoteAddress
    }
  }

  private var storage: Storage

  public var code: Code {
    get { self.storage.code }
    set { self.unique.code = newValue }
  }

  /// The response's headers. Those of a stream have gone out before: a hook cannot change them.
  public var headers: Headers {
    get { self.storage.headers }
    _modify { yield &self.unique.headers }
  }

  public var trailers: Headers {
    get { self.storage.trailers }
    _modify { yield &self.unique.trailers }
  }

  /// Set if and only if `code` is not ``Code/ok``.
  public var error: ConnectError? {
    get { self.storage.error }
    _modify { yield &self.unique.error }
  }

  /// How many messages the caller has sent that were accepted: for a unary call 1.
  public var messagesSent: Int {
    get { self.storage.messagesSent }
    set { self.unique.messagesSent = newValue }
  }

  /// How many messages have come: for a unary call 1, or 0 if there was none.
  public var messagesReceived: Int {
    get { self.storage.messagesReceived }
    set { self.unique.messagesReceived = newValue }
  }

  /// How many attempts were made; 0 if nothing went to the network.
  public var attempts: Int {
    get { self.storage.attempts }
    set { self.unique.attempts = newValue }
  }

  /// The last attempt; nil if nothing went to the network.
  public var exchange: Exchange? {
    get { self.storage.exchange }
    set { self.unique.exchange = newValue }
  }

  public init(
    code: Code = .ok,
    headers: Headers = Headers(),
    trailers: Headers = Headers(),
    error: ConnectError? = nil
  ) {
    self.storage = Storage(code: code, headers: headers, trailers: trailers, error: error)
  }

  public init(error: ConnectError, headers: Headers = Headers()) {
    self.init(code: error.code, headers: headers, trailers: error.metadata, error: error)
  }

  /// Whether this is a copy of the other, and neither was changed.
  func isIdentical(to other: CallOutcome) -> Bool { self.storage === other.storage }

  /// Makes code and error agree, keeps an error of `given`, and its counts if this one was made anew.
  mutating func complete(from given: CallOutcome) {
    if self.attempts == 0, self.messagesSent == 0 {
      self.messagesSent = given.messagesSent
      self.messagesReceived = given.messagesReceived
      self.attempts = given.attempts
      self.exchange = given.exchange
    }
    if self.error == nil, self.code == .ok, let error = given.error { self.error = error }
    if let code = self.error?.code {
      if self.code != code { self.code = code }
    } else if self.code != .ok {
      self.error = ConnectError(code: self.code, metadata: self.trailers)
    }
  }

  /// What may be changed, since nobody else has it.
  private var unique: Storage {
    mutating get {
      if !isKnownUniquelyReferenced(&self.storage) { self.storage = Storage(copying: self.storage) }
      return self.storage
    }
  }

  /// `@unchecked Sendable`: changed only where the outcome that is changed holds the one reference, and under its exclusive
  /// access.
  private final class Storage: @unchecked Sendable {
    @exclusivity(unchecked) var code: Code
    @exclusivity(unchecked) var headers: Headers
    @exclusivity(unchecked) var trailers: Headers
    @exclusivity(unchecked) var error: ConnectError?
    @exclusivity(unchecked) var messagesSent = 0
    @exclusivity(unchecked) var messagesReceived = 0
    @exclusivity(unchecked) var attempts = 0
    @exclusivity(unchecked) var exchange: Exchange?

    init(code: Code, headers: Headers, trailers: Headers, error: ConnectError?) {
      self.code = code
      self.headers = headers
      self.trailers = trailers
      self.error = error
    }

    convenience init(copying other: Storage) {
      self.init(code: other.code, headers: other.headers, trailers: other.trailers, error: other.error)
      self.messagesSent = other.messagesSent
      self.messagesReceived = other.messagesReceived
      self.attempts = other.attempts
      self.exchange = other.exchange
    }
  }
}
