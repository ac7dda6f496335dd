/// A request as interceptors see it on its way down.
///
/// `Message` is the method's input in message hooks, and `ByteBuffer` in byte hooks of unary calls. It is `Void` at the
/// start of a stream, whose messages follow one by one. The headers are the user's. The wire protocol adds its own
/// headers (timeout, encodings, protocol version) below the interceptors.
///
/// Copying a request copies two references. Changing a copy does not change the original.
///
/// swift-http-types has another type of this name. A file that imports both modules writes `Connect.HTTPRequest`.
public struct HTTPRequest<Message: Sendable>: Sendable {
  @usableFromInline var head: RequestHead
  @usableFromInline var box: MessageBox<Message>

  /// The message to send: empty (`Void`) for a stream, whose messages follow one by one.
  public var message: Message {
    get { self.box.message }
    set { self.box = MessageBox(newValue) }
  }

  /// Where the request goes: the client's host and the method's path.
  public var url: RequestURL {
    get { self.head.url }
    set { self.uniqueHead.url = newValue }
  }

  /// What the server is told as the host in place of that of ``url`` (`:authority`, `Host`); nil for the host of ``url``.
  /// See ``CallOptions/authority``. A newly created request inherits it from the request that the interceptor received,
  /// like ``context``. A copy of that request does not: with nil there, the call goes without the authority.
  public var authority: String? {
    get { self.head.authority }
    set { self.uniqueHead.callAuthority = CallDestination(newValue) }
  }

  /// The type of the body, for example `application/proto` or `application/connect+json`.
  public var contentType: String {
    get { self.head.contentType }
    set { self.uniqueHead.contentType = newValue }
  }

  /// The metadata that the caller and the interceptors send. The wire protocol's own headers are not among it.
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

  /// Sent behind the body. Most servers ignore trailers of requests.
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

  /// Values that belong to the call and not to the wire; see ``CallContext``. A newly created request without a context
  /// inherits the context of the request that the interceptor received.
  public var context: CallContext {
    get { self.head.context ?? CallContext() }
    _modify {
      let head = self.uniqueHead
      var context = head.context ?? CallContext()
      head.context = nil
      defer { head.context = context }
      yield &context
    }
  }

  /// Whether the context is empty, as for most calls.
  package var isContextEmpty: Bool { self.head.context?.isEmpty ?? true }

  /// Whether the request will go as HTTP GET, with the message in the URL. Caches depend on it. A hook may set it to
  /// false. A newly created request inherits it from the request that the interceptor received, like ``context``.
  public var isGET: Bool {
    get { self.head.isGET ?? false }
    set { self.uniqueHead.isGET = newValue }
  }

  /// Whether equal messages must be encoded as equal bytes, for example for a cache. GET requests are always encoded
  /// this way. A message hook may set it to true.
  public var encodesDeterministically: Bool {
    get { self.head.encodesDeterministically }
    set { self.uniqueHead.encodesDeterministically = newValue }
  }

  /// Distinguishes clients that servers identify by something other than headers, such as a TLS client certificate. Nil
  /// if there is no such identity, and for a request that does not belong to a call. See
  /// ``ProtocolClient/clientIdentity``.
  package var clientIdentity: UInt64? {
    get { self.head.clientIdentity }
    set { self.uniqueHead.clientIdentity = newValue }
  }

  /// The method that is called; nil for a request that does not belong to a call. A newly created request inherits it from
  /// the request that the interceptor received, like ``context``.
  public var method: MethodInfo? {
    get { self.head.method }
    set { self.uniqueHead.method = newValue }
  }

  /// The time limit of the whole call with all its attempts, counted from its start; nil if there is no limit.
  public var timeout: Duration? { self.head.timeout }

  /// The service's rules for retries; nil if there are none.
  package var retryRules: RetryRules? { self.head.retryRules }

  /// A request that belongs to no call yet. When a hook passes it on, it inherits from the request that the hook
  /// received: the method, ``isGET``, and the `context` if that is nil.
  public init(
    url: RequestURL,
    contentType: String,
    headers: Headers = Headers(),
    message: Message,
    trailers: Headers = Headers(),
    context: CallContext? = nil
  ) {
    let head = RequestHead(
      url: url,
      contentType: contentType,
      headers: headers,
      trailers: trailers,
      context: context,
      isGET: nil
    )
    head.isNew = true
    self.init(head: head, message: message)
  }

  init(head: RequestHead, message: Message) {
    self.init(head: head, box: MessageBox(message))
  }

  @inlinable
  @inline(__always)
  init(head: RequestHead, box: MessageBox<Message>) {
    self.head = head
    self.box = box
  }

  /// The same request around another message.
  public func with<Other: Sendable>(_ message: Other) -> HTTPRequest<Other> {
    HTTPRequest<Other>(head: self.head, message: message)
  }

  /// Adds to a newly created request what it lacks of the request that the interceptor received.
  private mutating func complete(from given: RequestHead.CallPart) {
    if self.head.lacksCallPart(of: given) { self.uniqueHead.complete(from: given) }
  }

  /// Lets a hook change the request, which then has all that belongs to the call.
  ///
  /// If others share the head, the first change copies it: the old head is then available afterwards.
  package mutating func change(by update: (inout HTTPRequest) throws -> Void) rethrows {
    if isKnownUniquelyReferenced(&self.head) {
      let given = self.head.callPart
      try update(&self)
      self.complete(from: given)
    } else {
      let given = self.head
      try update(&self)
      if self.head !== given { self.complete(from: given.callPart) }
    }
  }

  /// The head, for changes. It is copied first if other requests share it.
  private var uniqueHead: RequestHead {
    mutating get {
      if !isKnownUniquelyReferenced(&self.head) { self.head = RequestHead(copying: self.head) }
      return self.head
    }
  }
}

extension HTTPRequest where Message == Void {
  /// The start of a stream, or a request as call hooks see it: without a message. It inherits as any newly created
  /// request.
  public init(
    url: RequestURL,
    contentType: String,
    headers: Headers = Headers(),
    trailers: Headers = Headers(),
    context: CallContext? = nil
  ) {
    self.init(
      url: url,
      contentType: contentType,
      headers: headers,
      message: (),
      trailers: trailers,
      context: context
    )
  }

  package init(head: RequestHead) {
    self.init(head: head, box: Self.emptyBox)
  }

  private static let emptyBox = MessageBox(())
}

/// A request without its message. Copies of a request share it until one of them changes it.
///
/// `@unchecked Sendable`: only ``HTTPRequest`` changes it, while it holds the only reference and has exclusive access to
/// itself.
///
/// Each access to a variable ends before other code runs: ``HTTPRequest`` takes headers out to change them in place. So the
/// compiler needs no exclusivity checks at run time. It can prove this only for variables that other modules do not see.
@usableFromInline
package final class RequestHead: @unchecked Sendable {
  fileprivate(set) var url: RequestURL
  fileprivate(set) var contentType: String
  fileprivate(set) var headers: Headers
  fileprivate(set) var trailers: Headers
  /// Nil if the request was created without a context.
  fileprivate(set) var context: CallContext?
  fileprivate(set) var isGET: Bool?
  fileprivate(set) var encodesDeterministically = false
  /// Whether it was created apart from a call, and has not inherited yet. Otherwise nil as the authority is a decision.
  fileprivate(set) var isNew = false
  fileprivate(set) var timeout: Duration?
  fileprivate(set) var method: MethodInfo?
  fileprivate(set) var clientIdentity: UInt64?
  fileprivate(set) var retryRules: RetryRules?
  fileprivate(set) var callAuthority: CallDestination?

  var authority: String? { self.callAuthority?.authority }

  /// The properties that belong to the call. A newly created request inherits them from the request that the interceptor
  /// received.
  struct CallPart {
    var context: CallContext?
    var isGET: Bool?
    var encodesDeterministically: Bool
    var timeout: Duration?
    var method: MethodInfo?
    var clientIdentity: UInt64?
    var retryRules: RetryRules?
    var authority: CallDestination?
  }

  var callPart: CallPart {
    CallPart(
      context: self.context,
      isGET: self.isGET,
      encodesDeterministically: self.encodesDeterministically,
      timeout: self.timeout,
      method: self.method,
      clientIdentity: self.clientIdentity,
      retryRules: self.retryRules,
      authority: self.callAuthority
    )
  }

  fileprivate func lacksCallPart(of given: CallPart) -> Bool {
    self.isNew || self.context == nil || self.isGET == nil || self.method == nil
      || (self.clientIdentity == nil && given.clientIdentity != nil)
      || (self.retryRules == nil && given.retryRules != nil)
  }

  fileprivate func complete(from given: CallPart) {
    if self.context == nil { self.context = given.context }
    if self.isGET == nil { self.isGET = given.isGET }
    if given.encodesDeterministically { self.encodesDeterministically = true }
    self.timeout = given.timeout
    if self.method == nil { self.method = given.method }
    if self.clientIdentity == nil { self.clientIdentity = given.clientIdentity }
    if self.retryRules == nil { self.retryRules = given.retryRules }
    if self.isNew, self.callAuthority == nil { self.callAuthority = given.authority }
    self.isNew = false
  }

  /// This head. If an interceptor has created it, what it lacks is added from the head that the interceptor received.
  func completed(from given: RequestHead?) -> RequestHead {
    guard let given, self !== given else { return self }
    let part = given.callPart
    guard self.lacksCallPart(of: part) else { return self }
    let head = RequestHead(copying: self)
    head.complete(from: part)
    return head
  }

  /// The same head with another content type.
  func with(contentType: String) -> RequestHead {
    let head = RequestHead(copying: self)
    head.contentType = contentType
    return head
  }

  init(
    url: RequestURL,
    contentType: String,
    headers: Headers,
    trailers: Headers,
    context: CallContext?,
    isGET: Bool?,
    timeout: Duration? = nil,
    method: MethodInfo? = nil,
    clientIdentity: UInt64? = nil,
    retryRules: RetryRules? = nil,
    authority: CallDestination? = nil
  ) {
    self.url = url
    self.contentType = contentType
    self.headers = headers
    self.trailers = trailers
    self.context = context
    self.isGET = isGET
    self.timeout = timeout
    self.method = method
    self.clientIdentity = clientIdentity
    self.retryRules = retryRules
    self.callAuthority = authority
  }

  fileprivate convenience init(copying other: RequestHead) {
    self.init(
      url: other.url,
      contentType: other.contentType,
      headers: other.headers,
      trailers: other.trailers,
      context: other.context,
      isGET: other.isGET,
      timeout: other.timeout,
      method: other.method,
      clientIdentity: other.clientIdentity,
      retryRules: other.retryRules,
      authority: other.callAuthority
    )
    self.encodesDeterministically = other.encodesDeterministically
    self.isNew = other.isNew
  }
}
