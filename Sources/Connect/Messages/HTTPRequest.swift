/// A request as interceptors see it on its way down.
///
/// `Message` is the method's input in message hooks, `ByteBuffer` in byte hooks of unary calls, and `Void` at
/// the start of a stream, whose messages follow one by one. The headers are the user's; what the wire
/// protocol adds (timeout, encodings, protocol version) comes below the interceptors.
///
/// A copy costs no more than two references; what a copy changes is its own.
///
/// swift-http-types has a type of the same name, which is another one. A file that imports both modules writes
/// `Connect.HTTPRequest`.
public struct HTTPRequest<Message: Sendable>: Sendable {
  @usableFromInline var head: RequestHead
  @usableFromInline var box: MessageBox<Message>

  public var message: Message {
    get { self.box.message }
    set { self.box = MessageBox(newValue) }
  }

  public var url: RequestURL {
    get { self.head.url }
    _modify {
      self.makeHeadUnique()
      yield &self.head.url
    }
  }

  /// For example `application/proto` or `application/connect+json`.
  public var contentType: String {
    get { self.head.contentType }
    _modify {
      self.makeHeadUnique()
      yield &self.head.contentType
    }
  }

  public var headers: Headers {
    get { self.head.headers }
    _modify {
      self.makeHeadUnique()
      yield &self.head.headers
    }
  }

  /// Sent behind the body, for servers that read such; most don't.
  public var trailers: Headers {
    get { self.head.trailers }
    _modify {
      self.makeHeadUnique()
      yield &self.head.trailers
    }
  }

  /// Values that belong to the call and not to the wire; see ``CallContext``. A request that an interceptor
  /// made anew without naming a context keeps that of the one it was given.
  public var context: CallContext {
    get { self.head.context ?? CallContext() }
    set {
      self.makeHeadUnique()
      self.head.context = newValue
    }
  }

  /// Whether the request will go as HTTP GET, with the message in the URL, which is what caches want to know. A
  /// hook may set it to false. A request that an interceptor made anew keeps what that of the one it was given
  /// says, as with ``context``.
  public var isGET: Bool {
    get { self.head.isGET ?? false }
    set {
      self.makeHeadUnique()
      self.head.isGET = newValue
    }
  }

  /// Whether equal messages have to become equal bytes, which is what caches want; requests that go as GET always do. A
  /// message hook may set it to true.
  public var encodesDeterministically: Bool {
    get { self.head.encodesDeterministically }
    set {
      self.makeHeadUnique()
      self.head.encodesDeterministically = newValue
    }
  }

  /// Tells clients apart that servers know by something other than headers, such as a TLS client certificate; nil if there
  /// is nothing of the kind. That of ``ProtocolClient/clientIdentity``, which a request made for other purposes than a
  /// call lacks.
  public var clientIdentity: UInt64? {
    get { self.head.clientIdentity }
    set {
      self.makeHeadUnique()
      self.head.clientIdentity = newValue
    }
  }

  /// The method that is called; nil for a request that does not belong to a call. If an interceptor makes a new request
  /// without a method, it gets that of the request which the interceptor was given.
  public var method: MethodInfo? {
    get { self.head.method }
    set {
      self.makeHeadUnique()
      self.head.method = newValue
    }
  }

  /// How long the call may take, from its start to its end with all its attempts; nil if there is no limit.
  public var timeout: Duration? { self.head.timeout }

  public init(
    url: RequestURL,
    contentType: String,
    headers: Headers = Headers(),
    message: Message,
    trailers: Headers = Headers(),
    context: CallContext? = nil
  ) {
    self.init(
      head: RequestHead(
        url: url,
        contentType: contentType,
        headers: headers,
        trailers: trailers,
        context: context,
        isGET: nil
      ),
      message: message
    )
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

  /// Gives a newly created request what it lacks of the request that the interceptor received.
  mutating func complete(from given: RequestHead.CallPart) {
    if self.head.lacksCallPart(of: given) {
      self.makeHeadUnique()
      self.head.complete(from: given)
    }
  }

  private mutating func makeHeadUnique() {
    if !isKnownUniquelyReferenced(&self.head) { self.head = RequestHead(copying: self.head) }
  }
}

extension HTTPRequest where Message == Void {
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

/// What all of a request is but its message. Shared by copies of a request until one of them changes it.
///
/// `@unchecked Sendable`: changed only by ``HTTPRequest``, and there only where it holds the one reference, under its own
/// exclusive access.
@usableFromInline
package final class RequestHead: @unchecked Sendable {
  @exclusivity(unchecked) fileprivate(set) var url: RequestURL
  @exclusivity(unchecked) fileprivate(set) var contentType: String
  @exclusivity(unchecked) fileprivate(set) var headers: Headers
  @exclusivity(unchecked) fileprivate(set) var trailers: Headers
  /// Nil if the request was made without.
  @exclusivity(unchecked) fileprivate(set) var context: CallContext?
  @exclusivity(unchecked) fileprivate(set) var isGET: Bool?
  @exclusivity(unchecked) fileprivate(set) var encodesDeterministically = false
  @exclusivity(unchecked) fileprivate(set) var timeout: Duration?
  @exclusivity(unchecked) fileprivate(set) var method: MethodInfo?
  @exclusivity(unchecked) fileprivate(set) var clientIdentity: UInt64?

  /// What a request has of its call. A newly created request inherits it from the request the interceptor received.
  struct CallPart {
    var context: CallContext?
    var isGET: Bool?
    var encodesDeterministically: Bool
    var timeout: Duration?
    var method: MethodInfo?
    var clientIdentity: UInt64?
  }

  var callPart: CallPart {
    CallPart(
      context: self.context,
      isGET: self.isGET,
      encodesDeterministically: self.encodesDeterministically,
      timeout: self.timeout,
      method: self.method,
      clientIdentity: self.clientIdentity
    )
  }

  fileprivate func lacksCallPart(of given: CallPart) -> Bool {
    self.context == nil || self.isGET == nil || self.method == nil
      || (self.clientIdentity == nil && given.clientIdentity != nil)
  }

  fileprivate func complete(from given: CallPart) {
    if self.context == nil { self.context = given.context }
    if self.isGET == nil { self.isGET = given.isGET }
    if given.encodesDeterministically { self.encodesDeterministically = true }
    self.timeout = given.timeout
    if self.method == nil { self.method = given.method }
    if self.clientIdentity == nil { self.clientIdentity = given.clientIdentity }
  }

  /// This head; if an interceptor has made it, with what it lacks of the head that the interceptor received.
  func completed(from given: RequestHead?) -> RequestHead {
    guard let given, self !== given else { return self }
    let part = given.callPart
    guard self.lacksCallPart(of: part) else { return self }
    let head = RequestHead(copying: self)
    head.complete(from: part)
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
    clientIdentity: UInt64? = nil
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
      clientIdentity: other.clientIdentity
    )
    self.encodesDeterministically = other.encodesDeterministically
  }
}
