public import NIOCore

/// An HTTP transport. `NIOHTTPClient` of the module `ConnectNIO` is one over sockets; tests bring their own.
///
/// A transport does one thing: it carries a stream, a request and its response, with demand in both
/// directions. It knows nothing of RPC.
public protocol HTTPClientInterface: Sendable {
  /// Whether the transport itself authenticates the client to servers: with a TLS client certificate, or with headers
  /// that it adds. Such clients do not share cached responses with others. True unless the transport says otherwise.
  var authenticatesClient: Bool { get }

  /// The executors among which a `ProtocolClient` spreads its calls. Each call goes to the executor where it is made,
  /// else to the executor with the fewest calls. Each executor can be passed to ``endpoint(for:on:requiresHTTP2:)``.
  /// Empty by default: then all calls of a client live where the transport puts its endpoint.
  var executors: [any CallExecutor] { get }

  /// The endpoint for `origin`. Opens no connection: the first stream does.
  ///
  /// - Parameters:
  ///   - origin: Where the endpoint's requests go: scheme, host and port, or a socket of another kind.
  ///   - executor: If given, the endpoint has to live on this executor, which is one of ``executors``, or came from another
  ///     endpoint of the same transport.
  ///   - requiresHTTP2: Whether streams of the endpoint must go over HTTP/2 or HTTP/3, as gRPC's must. The transport then
  ///     never falls back to HTTP/1.1; a server that does not speak HTTP/2 fails the stream.
  /// - Throws: ``ConnectError`` with `invalid_argument` if the transport cannot serve such an origin. With
  ///   `failed_precondition` if the transport is not allowed to speak HTTP/2 and it is required.
  func endpoint(
    for origin: Origin,
    on executor: (any CallExecutor)?,
    requiresHTTP2: Bool
  ) throws(ConnectError) -> any HTTPEndpoint
}

extension HTTPClientInterface {
  public var authenticatesClient: Bool { true }
  public var executors: [any CallExecutor] { [] }
}

/// A transport's way to one origin, for any number of calls.
public protocol HTTPEndpoint: AnyObject, Sendable {
  /// Calls to this origin run here, and so do all functions of streams and handlers.
  var executor: any CallExecutor { get }

  /// The largest header or trailer list that a response may have, counted as ``HeaderListSize`` does. Trailers in the
  /// body of a response are held to it, too. ``HeaderListSize/defaultLimit`` unless the transport says otherwise.
  var maximumHeaderListSize: Int { get }

  /// The endpoint to which this one passes its streams, for transports around other transports. What the underlying
  /// endpoint knows of its service, such as the rules of a service config, also holds for calls over this one. Nil by
  /// default.
  var underlying: (any HTTPEndpoint)? { get }

  /// Starts a stream. To be called on ``executor``. Never fails by itself: whatever goes wrong reaches the
  /// handler through ``HTTPStreamHandler/streamDidFail(_:)``, and never before this function has returned.
  ///
  /// The handler is kept until the stream has ended, failed, or was cancelled.
  func startStream(
    _ request: HTTPStreamRequest,
    handler: any HTTPStreamHandler
  ) -> any HTTPStream
}

extension HTTPEndpoint {
  public var underlying: (any HTTPEndpoint)? { nil }
  public var maximumHeaderListSize: Int { HeaderListSize.defaultLimit }
}

/// The head of a request, and its body where that is known as a whole.
public struct HTTPStreamRequest: Sendable {
  /// The HTTP method of a request.
  public enum Method: String, Sendable, Hashable {
    /// A request without a body; the message is in the ``target``. Connect protocol only.
    case get = "GET"
    /// A request with the message or messages in its body.
    case post = "POST"
  }

  /// The body of a request, as far as it is known when the stream starts.
  public enum Body: Sendable {
    /// The whole body; the request ends with it. An empty buffer means no body at all.
    case complete(ByteBuffer)
    /// The body follows through ``HTTPStream/write(_:)`` until ``HTTPStream/finish(trailers:)``.
    case streamed
  }

  /// The HTTP method.
  public var method: Method
  // Flags stand together, so that they take one word.
  /// Whether the call waits, until its deadline, where no server can be reached; otherwise it fails as soon as none
  /// can. False by default.
  public var waitsForReady = false
  /// Whether the method has no side effects, so that the server may process the request twice: the transport may send
  /// it as early data (RFC 8470, section 3). False by default.
  public var hasNoSideEffects = false
  /// Whether the call can be made in another protocol, so that it does not wait for a server to speak HTTP/2.
  package var hasOtherProtocols = false
  /// Whether a wire interceptor has received it, so that nil as the authority is a decision of the interceptor.
  package var isGiven = false
  /// Path and query, exactly as they go on the wire.
  public var target: String
  /// All fields but pseudo-headers, `host`, `content-length`, `transfer-encoding` and `connection`, which
  /// are the transport's (``authority``). They have been checked: no invalid name, no CR, LF or NUL.
  public var headers: Headers
  /// The whole body, or that it follows in pieces.
  public var body: Body
  /// What the server is told as its host in place of the origin's: a host, and a port if need be. It has been checked. Nil,
  /// the default, for the origin's (``Origin/authority``). A transport with TLS fails a stream whose authority the
  /// server's certificate does not name, with `unavailable`.
  public var authority: String? {
    get { self.destination?.authority }
    set { self.setAuthority(newValue) }
  }
  /// The authority and the cluster of the call; nil for calls without both.
  package var destination: CallDestination?
  /// The values that the call carries, which are not sent. For transports in the same process as their server.
  package var context = CallContext()

  /// The start of a request. The parts are not checked here.
  public init(method: Method, target: String, headers: Headers, body: Body) {
    self.method = method
    self.target = target
    self.headers = headers
    self.body = body
  }

  /// Whether the call goes on waiting where no server can be reached.
  ///
  /// - Parameter error: Why there is no connection.
  package func waits(after error: ConnectError) -> Bool {
    if case .ended = error.unnamed { return false }
    return self.waitsForReady && !(self.hasOtherProtocols && error.isVersionMismatch)
  }
}

/// The side of a stream that the call drives. All functions are called on the endpoint's executor. They do nothing
/// after ``cancel()``, and after the handler was told of the end or of a failure.
public protocol HTTPStream: AnyObject {
  /// Adds bytes to the request's body. They are sent as the peer's window and the socket allow; the handler
  /// is told by ``HTTPStreamHandler/streamDidBecomeWritable()`` when they no longer wait in the transport.
  func write(_ bytes: ByteBuffer)

  /// Ends the request. Empty `trailers` send none.
  func finish(trailers: Headers)

  /// Says that the call has consumed `count` bytes of the response's body, which it received before. The transport
  /// holds the peer back once the received and not yet consumed bytes reach the stream's window.
  func consume(_ count: Int)

  /// Abandons the stream on the wire (RST_STREAM with CANCEL, or the connection's end for HTTP/1.1). The handler hears
  /// nothing more.
  func cancel()

  /// Like ``cancel()``, because the call's deadline has passed, which may be the server's fault. A transport can count
  /// this against the server, or check whether the connection is still alive. The same as ``cancel()`` by default.
  func expire()
}

extension HTTPStream {
  public func expire() { self.cancel() }
}

/// The side of a stream that the transport drives. All functions are called on the endpoint's executor, never from
/// within a function of ``HTTPStream`` or ``HTTPEndpoint``. A transport that notices an event in such a function
/// reports it afterwards.
///
/// The order is: `streamDidStart` at most once, one head, any number of bytes, then exactly one of `streamDidEnd` and
/// `streamDidFail`. `streamDidFail` may come at any point.
public protocol HTTPStreamHandler: AnyObject {
  /// The request has got a connection.
  func streamDidStart(on connection: HTTPConnectionInfo)

  /// All that was written has gone to the socket, and more may be written. Not called for a body that was
  /// given whole.
  func streamDidBecomeWritable()

  /// The response's head; informational (1xx) ones are left out.
  func streamDidReceive(_ head: HTTPResponseHead)

  /// A piece of the response's body, never empty.
  func streamDidReceive(_ bytes: ByteBuffer)

  /// The response is complete. If the request was not, the transport has ended it (HTTP/2: END_STREAM if
  /// nothing else was due, else RST_STREAM).
  func streamDidEnd(trailers: Headers)

  /// There will be no (whole) response.
  func streamDidFail(_ failure: HTTPStreamFailure)
}

/// The status and headers of a response. Pseudo-headers are left out.
public struct HTTPResponseHead: Sendable {
  /// The HTTP status, for example 200.
  public var status: Int
  /// The response's header fields in the order of the wire.
  public var headers: Headers

  /// The head of a response.
  public init(status: Int, headers: Headers) {
    self.status = status
    self.headers = headers
  }
}

/// Why a stream has no (whole) response.
public struct HTTPStreamFailure: Sendable {
  /// What the caller should see, unless its own deadline or cancellation came first.
  public var error: ConnectError
  /// Whether the request may be sent again, whatever the method, since the peer certainly did not process it. Examples: a
  /// refused stream, a stream above GOAWAY's last stream id, a connection lost before a byte was written.
  ///
  /// Also true for early data of a connection that ended before its handshake was complete. The peer may have processed
  /// such a request, but the transport has sent it early only because it has no side effects
  /// (``HTTPStreamRequest/hasNoSideEffects``).
  public var isUnprocessed: Bool
  /// Whether sending the request again leaves the call its one transparent retry, since the failure says nothing against the
  /// server:
  ///
  /// - The request was started before the handshake of a connection was complete, and the handshake has failed. Without
  ///   early data, the request would have waited for another connection. A connection has early data only with a ticket,
  ///   which is used once, so there is an end to this.
  /// - A server that has served other calls on the connection renews it, and did not process this request (GOAWAY).
  ///
  /// A call is sent again so 100 times at most.
  package var keepsTransparentRetry = false
  /// Whether the peer speaks another version of HTTP than the stream needs, and so has not processed the request. A client that
  /// may choose its protocol then makes the call in another one.
  public var isVersionMismatch: Bool {
    get { self.error.isVersionMismatch }
    set { self.error.unnamed = newValue ? .version : nil }
  }

  /// A failure with the error that the caller sees.
  ///
  /// - Parameters:
  ///   - error: See ``error``.
  ///   - isUnprocessed: See ``isUnprocessed``. If it is wrongly true, calls may be made twice.
  public init(error: ConnectError, isUnprocessed: Bool = false) {
    self.error = error
    self.isUnprocessed = isUnprocessed
  }
}

/// Facts about the connection that serves a stream, for metrics.
public struct HTTPConnectionInfo: Sendable, Hashable {
  /// A version of HTTP. The raw value is its usual name.
  public enum Version: String, Sendable, Hashable {
    /// HTTP/1.1 (RFC 9112): a connection carries one request at a time.
    case http1 = "HTTP/1.1"
    /// HTTP/2 (RFC 9113), with or without TLS.
    case http2 = "HTTP/2"
    /// HTTP/3 over QUIC (RFC 9114).
    case http3 = "HTTP/3"

    /// Whether a connection carries many streams at the same time.
    package var isMultiplexed: Bool { self != .http1 }
  }

  /// The version of HTTP that the connection speaks.
  public var version: Version
  /// Whether an earlier stream used the connection.
  public var isReused: Bool
  /// The peer's address as text, if known.
  public var remoteAddress: String?
  /// The time it took to open the connection; nil if it is reused, or if the time is not known.
  public var setup: Setup?
  /// Whether the request was sent before the TLS handshake was complete (early data, RFC 8446, section 2.3). If the server
  /// rejects early data, the request is sent again after the handshake.
  public var isEarlyData: Bool
  /// TLS of the connection, with the server's certificates; nil without TLS, and if it is not known.
  public var tls: TLS?

  /// The time it took to open a connection. The opening may have begun before the stream that waited for it.
  public struct Setup: Sendable, Hashable {
    /// Finding the addresses of the host's name.
    public var nameResolution: Duration
    /// Connecting to one of the addresses, or to the socket.
    public var connecting: Duration
    /// The TLS handshake; nil without TLS, and while the handshake is not complete (see ``HTTPConnectionInfo/isEarlyData``).
    public var tls: Duration?

    /// The durations of the phases of opening a connection.
    public init(nameResolution: Duration, connecting: Duration, tls: Duration? = nil) {
      self.nameResolution = nameResolution
      self.connecting = connecting
      self.tls = tls
    }

    /// The sum of the phases.
    public var total: Duration {
      self.nameResolution.clamped + self.connecting.clamped + (self.tls?.clamped ?? .zero)
    }
  }

  /// What is known of a connection.
  public init(
    version: Version,
    isReused: Bool,
    remoteAddress: String? = nil,
    setup: Setup? = nil,
    isEarlyData: Bool = false,
    tls: TLS? = nil
  ) {
    self.version = version
    self.isReused = isReused
    self.remoteAddress = remoteAddress
    self.setup = setup
    self.isEarlyData = isEarlyData
    self.tls = tls
  }
}
