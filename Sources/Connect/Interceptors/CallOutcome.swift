/// How a call ends for its caller, as call hooks see it: a response without its messages.
public struct CallOutcome: Sendable {
  /// The call's last attempt as it was on the wire. For hedged calls: the attempt that decided the outcome.
  public struct Exchange: Sendable, Hashable {
    /// The HTTP status of the response; nil if no response has arrived.
    public var httpStatus: Int?
    /// The size of the request's body, in bytes, as it was sent.
    public var requestBodyBytes: Int
    /// The size of the response's body, in bytes, as it arrived.
    public var responseBodyBytes: Int
    /// The peer's address as text; nil if no peer was reached, or if its address is not known.
    public var remoteAddress: String?

    /// An exchange with the given facts, for tests of hooks.
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

  /// The code of ``error``; ``Code/ok`` if there is no error. Setting another code gives an outcome without an error
  /// an error with this code. It does nothing to an outcome that has an error.
  public var code: Code {
    get { self.error?.code ?? .ok }
    set { if self.error == nil { self.error = newValue.error(metadata: self.trailers) } }
  }

  /// The response's headers. A hook cannot change the headers of a stream, which have already gone out.
  public var headers: Headers

  /// The response's trailers, whatever the wire protocol puts them into; empty if none arrived.
  public var trailers: Headers

  /// Why the call failed; nil for a call that succeeded.
  public var error: ConnectError?

  /// How many messages of the caller were accepted; 1 for a unary call.
  public internal(set) var messagesSent: Int

  /// How many messages have arrived; at most 1 for a unary call.
  public internal(set) var messagesReceived: Int

  /// How many attempts were made; 0 if nothing went to the network.
  public internal(set) var attempts: Int

  /// The last attempt; nil if nothing went to the network.
  public internal(set) var exchange: Exchange?

  /// An outcome that a hook, or a test of hooks, makes. Its counts are 0.
  ///
  /// - Parameters:
  ///   - code: Ignored if there is an `error`. Another code than ``Code/ok`` creates an error with this code.
  ///   - headers: See ``headers``; empty by default.
  ///   - trailers: See ``trailers``. An error that `code` creates has them as its metadata.
  ///   - error: See ``error``; nil if only `code` decides.
  public init(
    code: Code = .ok,
    headers: Headers = Headers(),
    trailers: Headers = Headers(),
    error: ConnectError? = nil
  ) {
    self.init(
      headers: headers,
      trailers: trailers,
      error: error ?? code.error(metadata: trailers),
      messagesSent: 0,
      messagesReceived: 0
    )
  }

  /// The outcome of a call that failed. The trailers are the error's ``ConnectError/metadata``.
  public init(error: ConnectError, headers: Headers = Headers()) {
    self.init(headers: headers, trailers: error.metadata, error: error)
  }

  /// The outcome of a call.
  @inline(__always)
  init(
    headers: Headers,
    trailers: Headers,
    error: ConnectError?,
    messagesSent: Int,
    messagesReceived: Int
  ) {
    self.headers = headers
    self.trailers = trailers
    self.error = error
    self.messagesSent = messagesSent
    self.messagesReceived = messagesReceived
    self.attempts = 0
    self.exchange = nil
  }

  /// Whether this outcome and `other` are unchanged copies of each other. Parts are compared by identity: a part that
  /// was replaced by an equal one counts as changed.
  func isUnchanged(since other: CallOutcome) -> Bool {
    let hasSameError =
      switch (self.error, other.error) {
      case (nil, nil): true
      case (let error?, let otherError?): error.isIdentical(to: otherError)
      default: false
      }
    return hasSameError && self.attempts == other.attempts && self.messagesSent == other.messagesSent
      && self.headers.isIdentical(to: other.headers)
      && self.trailers.isIdentical(to: other.trailers)
  }

  /// Takes the counts of `given`, and its error if this outcome has none: no hook can turn a failure into a success.
  mutating func complete(from given: CallOutcome) {
    self.messagesSent = given.messagesSent
    self.messagesReceived = given.messagesReceived
    self.attempts = given.attempts
    self.exchange = given.exchange
    if self.error == nil { self.error = given.error }
  }
}
