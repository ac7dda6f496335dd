internal import NIOCore

/// Writes requests in a client's wire protocol: heads, and the messages of bodies. A client has one for its unary calls
/// and one for its streams. A call with its own compression makes another.
final class RequestWriter: Sendable {
  private let wire: any WireProtocol
  private let streamType: StreamType
  private let unaryGET: UnaryGET
  /// The compression that the calls ask for.
  let requestCompression: RequestCompression
  private let acceptedEncodings: AcceptedEncodings
  private let framer: MessageFramer
  /// The content-type of requests that no interceptor has changed.
  private let contentType: String
  /// ``contentType`` if it can be sent, which depends on the codec's name; else nil.
  private let usableContentType: String?
  /// The protocol's headers for that content-type, without deadline and compressed body. The user's headers follow.
  private let plainHeaders: Headers

  /// - Parameters:
  ///   - isUnary: Whether it is for unary calls; else it is for streams of all kinds.
  ///   - maximumMessageSize: The limit for a message before compression, in bytes; nil for no limit.
  init(
    wire: any WireProtocol,
    codecName: String,
    isUnary: Bool,
    unaryGET: UnaryGET,
    compression: Compression,
    requestCompression: RequestCompression,
    acceptedEncodings: AcceptedEncodings,
    maximumMessageSize: Int?
  ) {
    self.wire = wire
    self.streamType = isUnary ? .unary : .bidirectionalStream
    self.unaryGET = unaryGET
    self.requestCompression = requestCompression
    self.acceptedEncodings = acceptedEncodings
    self.framer = MessageFramer(
      wire: wire,
      streamType: self.streamType,
      compression: compression,
      requestCompression: requestCompression,
      maximumSize: maximumMessageSize
    )
    self.contentType = wire.contentType(codecName: codecName, isUnary: isUnary)
    let isUsable = (try? HeaderRules.check(contentType: self.contentType)) != nil
    self.usableContentType = isUsable ? self.contentType : nil
    self.plainHeaders = wire.requestHeaders(
      Headers(),
      for: WireRequest(
        contentType: self.contentType,
        streamType: self.streamType,
        encoding: self.framer.encoding(for: nil),
        acceptedEncodings: acceptedEncodings
      )
    )
  }

  /// Whether it is for unary calls.
  var isUnary: Bool { self.streamType == .unary }

  /// The head of a request whose messages follow.
  ///
  /// - Throws: ``ConnectError`` with `invalid_argument` if something in `request` must not be sent.
  func head(of request: RequestHead, timeout: Duration?) throws(ConnectError) -> HTTPStreamRequest {
    try HeaderRules.check(request, for: self.wire, knowing: self.usableContentType)
    return self.post(request, self.headers(of: request, payload: nil, timeout: timeout), .streamed)
  }

  /// A request with one message: the head to start it with, and the body to write after the head, unless the head
  /// contains it.
  ///
  /// - Parameter message: Framed in place if nobody else holds it.
  /// - Throws: ``ConnectError``: `invalid_argument` as above, `resource_exhausted` if the message is too large,
  ///   `internal` if it cannot be compressed.
  func whole(
    _ request: RequestHead,
    message: consuming ByteBuffer,
    timeout: Duration?
  ) throws(ConnectError) -> (head: HTTPStreamRequest, rest: ByteBuffer?) {
    try HeaderRules.check(request, for: self.wire, knowing: self.usableContentType)
    let payload = try self.framer.payload(of: consume message)
    if request.isGET == true, let get = self.get(request, payload, timeout: timeout) { return (get, nil) }
    let headers = self.headers(of: request, payload: payload, timeout: timeout)
    let body = self.framer.frame(consume payload)
    guard request.trailers.isEmpty else { return (self.post(request, headers, .streamed), body) }
    return (self.post(request, headers, .complete(body)), nil)
  }

  /// A message as it goes into the body.
  ///
  /// - Throws: ``ConnectError``: `resource_exhausted` if it is too large, `internal` if it cannot be compressed.
  func body(of message: consuming ByteBuffer) throws(ConnectError) -> ByteBuffer {
    self.framer.frame(try self.framer.payload(of: consume message))
  }

  /// Updates the timeout that `request` announces, before the request is sent again.
  func renewTimeout(of request: inout HTTPStreamRequest, to timeout: Duration) {
    let field = self.wire.timeoutField(timeout)
    request.headers[field.name] = [field.value]
  }

  /// Whether `request` would go as GET if it were sent unchanged.
  func goesAsGET(_ request: HTTPRequest<ByteBuffer>) -> Bool {
    guard request.isGET else { return false }
    if case .alwaysEnabled = self.unaryGET { return request.trailers.isEmpty }
    guard let payload = try? self.framer.payload(of: request.message) else { return false }
    let wireRequest = self.wireRequest(request.head, payload: payload, timeout: nil)
    return self.getTarget(request.head, wireRequest, payload) != nil
  }

  private func wireRequest(
    _ request: RequestHead,
    payload: MessageFramer.Payload?,
    timeout: Duration?
  ) -> WireRequest {
    WireRequest(
      contentType: request.contentType,
      streamType: self.streamType,
      timeout: timeout,
      encoding: self.framer.encoding(for: payload),
      acceptedEncodings: self.acceptedEncodings
    )
  }

  private func headers(of request: RequestHead, payload: MessageFramer.Payload?, timeout: Duration?)
    -> Headers
  {
    if payload?.isCompressed != true, request.contentType == self.contentType,
      !UserAgent.isSet(in: request.headers)
    {
      var headers =
        request.headers.isEmpty
        ? self.plainHeaders : self.plainHeaders.joined(with: request.headers, extraCapacity: 1)
      if let timeout { headers.append(self.wire.timeoutField(timeout)) }
      return headers
    }
    return self.wire.requestHeaders(
      request.headers,
      for: self.wireRequest(request, payload: payload, timeout: timeout)
    )
  }

  private func post(_ request: RequestHead, _ headers: Headers, _ body: HTTPStreamRequest.Body)
    -> HTTPStreamRequest
  {
    var post = HTTPStreamRequest(
      method: .post,
      target: request.url.query.map { "\(request.url.path)?\($0)" } ?? request.url.path,
      headers: headers,
      body: body
    )
    if let context = request.context, !context.isEmpty { post.context = context }
    if let authority = request.callAuthority { post.destination = authority }
    return post
  }

  /// `request` as GET; nil if it has to go as POST.
  private func get(_ request: RequestHead, _ payload: MessageFramer.Payload, timeout: Duration?)
    -> HTTPStreamRequest?
  {
    var wireRequest = self.wireRequest(request, payload: payload, timeout: timeout)
    guard let target = self.getTarget(request, wireRequest, payload) else { return nil }
    wireRequest.isGET = true
    var get = HTTPStreamRequest(
      method: .get,
      target: target,
      headers: self.wire.requestHeaders(request.headers, for: wireRequest),
      body: .complete(ByteBuffer())
    )
    if let context = request.context { get.context = context }
    if let authority = request.callAuthority { get.destination = authority }
    return get
  }

  /// Path and query of `request` as GET; nil if it has to go as POST.
  private func getTarget(
    _ request: RequestHead,
    _ wireRequest: WireRequest,
    _ payload: MessageFramer.Payload
  ) -> String? {
    guard request.isGET == true, request.trailers.isEmpty,
      let query = self.wire.getQuery(message: payload.bytes, for: wireRequest)
    else { return nil }
    let url = request.url
    let target = url.query.map { "\(url.path)?\($0)&\(query)" } ?? "\(url.path)?\(query)"
    switch self.unaryGET {
    case .disabled: return nil
    case .alwaysEnabled: return target
    case .enabledForLimitedPayloadSizes(let limit):
      return url.origin.description.utf8.count + target.utf8.count <= limit ? target : nil
    }
  }
}
