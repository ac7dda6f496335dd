public import Connect
public import NIOCore

/// The hooks of a ``WireInterceptor`` for one exchange. Each is optional; one that is absent costs nothing.
///
/// A hook gets a value and `proceed`, which it calls once: in the hook, or later and from any thread. Parts keep their order
/// whatever the order of the calls: the head, then chunks, then the end. A second call is ignored. When the last copy of
/// `proceed` is released uncalled, the exchange fails with `internal`, and the message names the interceptor.
///
/// Hooks of several interceptors run from the first to the last on the request, and from the last to the first on the
/// response.
///
/// While a part waits, the hooks get further parts, up to ``WireLimits/waitingBytes`` and ``WireLimits/waitingChunks``; then
/// the peer, or the call, is held back. An interceptor that needs more of a body before it can go on takes the bytes with
/// `drop()`, and passes them on later. It has to bound what it keeps.
///
/// How bytes are divided into chunks means nothing. Chunks that wait may be joined.
public struct WireFunction: WireInterceptor {
  /// Gets the head of the request.
  ///
  /// If the whole body is known, it is in `HTTPStreamRequest/body-swift.property`, and the other request hooks are
  /// not called. A hook may make a streamed body complete; what then follows has to be dropped, and the end is left out. It
  /// may make a complete body streamed; the body then comes to the other request hooks of the interceptor, as one chunk and an
  /// end.
  ///
  /// A newly created request inherits `HTTPStreamRequest/authority` from the request that the hook got. A copy of that request
  /// does not: with nil there, the server is told the origin's host. An authority that is no host and port fails the exchange.
  public var requestHeadFunction: ((HTTPStreamRequest, Proceed<WireHeadVerb<HTTPStreamRequest>>) -> Void)?
  /// Gets a chunk of the request's body, never empty.
  public var requestChunkFunction: ((ByteBuffer, Proceed<WireChunkVerb>) -> Void)?
  /// Gets the trailers with which the request ends, often none.
  public var requestEndFunction: ((Headers, Proceed<WireEndVerb>) -> Void)?
  /// Called when the exchange has a connection, which comes before the head of the response.
  public var connectionFunction: ((HTTPConnectionInfo) -> Void)?
  /// Gets the head of the response.
  ///
  /// Its fields (`content-length`, `content-encoding`, digests) describe the body as the server sent it. An interceptor that
  /// changes the body has to change them.
  public var responseHeadFunction: ((HTTPResponseHead, Proceed<WireHeadVerb<HTTPResponseHead>>) -> Void)?
  /// Gets a chunk of the response's body, never empty.
  public var responseChunkFunction: ((ByteBuffer, Proceed<WireChunkVerb>) -> Void)?
  /// Gets the trailers with which the response ends, often none.
  public var responseEndFunction: ((Headers, Proceed<WireEndVerb>) -> Void)?
  /// Gets the reason why there is no whole response: of the transport, or of an interceptor inside of this one. It may
  /// change the reason, but there is no response all the same.
  public var failureFunction: ((HTTPStreamFailure, Proceed<HTTPStreamFailure>) -> Void)?
  /// Called exactly once, when the exchange is over for any reason. It is the last of the hooks.
  public var endFunction: ((WireOutcome) -> Void)?

  /// The hooks of one interceptor for one exchange; those that are nil are absent.
  public init(
    requestHeadFunction: ((HTTPStreamRequest, Proceed<WireHeadVerb<HTTPStreamRequest>>) -> Void)? = nil,
    requestChunkFunction: ((ByteBuffer, Proceed<WireChunkVerb>) -> Void)? = nil,
    requestEndFunction: ((Headers, Proceed<WireEndVerb>) -> Void)? = nil,
    connectionFunction: ((HTTPConnectionInfo) -> Void)? = nil,
    responseHeadFunction: ((HTTPResponseHead, Proceed<WireHeadVerb<HTTPResponseHead>>) -> Void)? = nil,
    responseChunkFunction: ((ByteBuffer, Proceed<WireChunkVerb>) -> Void)? = nil,
    responseEndFunction: ((Headers, Proceed<WireEndVerb>) -> Void)? = nil,
    failureFunction: ((HTTPStreamFailure, Proceed<HTTPStreamFailure>) -> Void)? = nil,
    endFunction: ((WireOutcome) -> Void)? = nil
  ) {
    self.requestHeadFunction = requestHeadFunction
    self.requestChunkFunction = requestChunkFunction
    self.requestEndFunction = requestEndFunction
    self.connectionFunction = connectionFunction
    self.responseHeadFunction = responseHeadFunction
    self.responseChunkFunction = responseChunkFunction
    self.responseEndFunction = responseEndFunction
    self.failureFunction = failureFunction
    self.endFunction = endFunction
  }

  /// The hooks themselves, so that a factory can return them.
  public func wireFunction() -> WireFunction { self }

  /// The parts of a request that have a hook.
  var requestKinds: WirePart.Kinds {
    var kinds: WirePart.Kinds = []
    if self.requestHeadFunction != nil { kinds.insert(.head) }
    if self.requestChunkFunction != nil { kinds.insert(.chunk) }
    if self.requestEndFunction != nil { kinds.insert(.end) }
    return kinds
  }

  /// The parts of a response that have a hook.
  var responseKinds: WirePart.Kinds {
    var kinds: WirePart.Kinds = []
    if self.responseHeadFunction != nil { kinds.insert(.head) }
    if self.responseChunkFunction != nil { kinds.insert(.chunk) }
    if self.responseEndFunction != nil { kinds.insert(.end) }
    if self.failureFunction != nil { kinds.insert(.failure) }
    return kinds
  }

  /// Whether there is no hook at all.
  var isEmpty: Bool {
    self.requestKinds.isEmpty && self.responseKinds.isEmpty && self.connectionFunction == nil
      && self.endFunction == nil
  }
}
