/// A request as interceptors see it on its way down.
///
/// `Message` is the method's input in message hooks, `ByteBuffer` in byte hooks of unary calls, and `Void` at
/// the start of a stream, whose messages follow one by one. The headers are the user's; what the wire
/// protocol adds (timeout, encodings, protocol version) comes below the interceptors.
public struct HTTPRequest<Message: Sendable>: Sendable {
  public var url: RequestURL
  /// For example `application/proto` or `application/connect+json`.
  public var contentType: String
  public var headers: Headers
  public var message: Message
  /// Sent behind the body, for servers that read such; most don't.
  public var trailers: Headers
  /// Values that belong to the call and not to the wire; see ``CallContext``. A request that an interceptor
  /// made anew without naming a context keeps that of the one it was given.
  public var context: CallContext {
    get { self.storedContext ?? CallContext() }
    set { self.storedContext = newValue }
  }
  var storedContext: CallContext?
  /// Whether the request will go as HTTP GET, with the message in the URL, which is what caches want to know. A
  /// hook may set it to false. A request that an interceptor made anew keeps what that of the one it was given
  /// says, as with ``context``.
  public var isGET: Bool {
    get { self.storedIsGET ?? false }
    set { self.storedIsGET = newValue }
  }
  var storedIsGET: Bool?

  public init(
    url: RequestURL,
    contentType: String,
    headers: Headers = Headers(),
    message: Message,
    trailers: Headers = Headers(),
    context: CallContext? = nil
  ) {
    self.url = url
    self.contentType = contentType
    self.headers = headers
    self.message = message
    self.trailers = trailers
    self.storedContext = context
  }

  /// The same request around another message.
  func with<Other: Sendable>(_ message: Other) -> HTTPRequest<Other> {
    var request = HTTPRequest<Other>(
      url: self.url,
      contentType: self.contentType,
      headers: self.headers,
      message: message,
      trailers: self.trailers,
      context: self.storedContext
    )
    request.storedIsGET = self.storedIsGET
    return request
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
}
