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
  public var messagesSent: Int { self.facts.messagesSent }

  /// How many messages have arrived; at most 1 for a unary call.
  public var messagesReceived: Int { self.facts.messagesReceived }

  /// How many attempts were made; 0 if nothing went to the network.
  public var attempts: Int { self.facts.attempts }

  /// The last attempt; nil if nothing went to the network.
  public var exchange: Exchange? { self.facts.exchange }

  /// What has happened, which no hook changes.
  struct Facts: Sendable {
    let messagesSent: Int
    let messagesReceived: Int
    let attempts: Int
    let exchange: Exchange?

    static let none = Facts(messagesSent: 0, messagesReceived: 0, attempts: 0, exchange: nil)
  }

  private var facts: Facts

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
      facts: .none
    )
  }

  /// The outcome of a call that failed. The trailers are the error's ``ConnectError/metadata``.
  public init(error: ConnectError, headers: Headers = Headers()) {
    self.init(headers: headers, trailers: error.metadata, error: error)
  }

  /// The outcome of a call.
  @inline(__always)
  init(headers: Headers, trailers: Headers, error: ConnectError?, facts: Facts) {
    self.headers = headers
    self.trailers = trailers
    self.error = error
    self.facts = facts
  }

  /// Lets a hook change what hooks may change. If it makes a new outcome, that is one of the same call. It cannot turn a
  /// failure into a success.
  package mutating func change(by function: (inout CallOutcome) -> Void) {
    let (facts, error) = (self.facts, self.error)
    function(&self)
    self.facts = facts
    if self.error == nil { self.error = error }
  }
}
