/// How a call ends for its caller, as call hooks see it: all of a response but its messages.
public struct CallOutcome: Sendable {
  /// The call's last attempt as it was on the wire. For hedged calls: the attempt that decided the outcome.
  public struct Exchange: Sendable, Hashable {
    /// The HTTP status of the response; nil if no response has arrived.
    public var httpStatus: Int?
    /// The size of the request's body, in bytes, as it was sent.
    public var requestBodyBytes: Int
    /// The size of the response's body, in bytes, as it arrived.
    public var responseBodyBytes: Int
    /// The peer's address as text; nil if none was reached, or if it is not known.
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

  /// The response's headers. Those of a stream have gone out before: a hook cannot change them.
  public var headers: Headers

  /// The response's trailers, whatever the wire protocol puts them into; empty if none arrived.
  public var trailers: Headers

  /// Why the call failed; nil for a call that succeeded.
  public var error: ConnectError?

  /// How many messages the caller has sent that were accepted: for a unary call 1.
  public internal(set) var messagesSent: Int

  /// How many messages have come: for a unary call 1, or 0 if there was none.
  public internal(set) var messagesReceived: Int

  /// How many attempts were made; 0 if nothing went to the network.
  public internal(set) var attempts: Int

  /// The last attempt; nil if nothing went to the network.
  public internal(set) var exchange: Exchange?

  /// An outcome that a hook, or a test of hooks, makes. Its counts are 0.
  ///
  /// - Parameter code: For an outcome without `error`: one that is not ``Code/ok`` makes it an error.
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

  /// What a call has come to.
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

  /// Whether nothing has changed since it was copied to, or from, `other`. Parts that were put in anew count as changed, even
  /// if they are equal: nothing is compared by its text.
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

  /// Keeps the counts of `given`, and its error if this one has none: no hook makes a call succeed that has failed.
  mutating func complete(from given: CallOutcome) {
    self.messagesSent = given.messagesSent
    self.messagesReceived = given.messagesReceived
    self.attempts = given.attempts
    self.exchange = given.exchange
    if self.error == nil { self.error = given.error }
  }
}
