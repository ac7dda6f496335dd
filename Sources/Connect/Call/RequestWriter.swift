internal import NIOCore

/// Writes a call's requests in its wire protocol: heads, and the messages of bodies.
struct RequestWriter {
  private let client: ProtocolClient
  private let streamType: StreamType
  private let framer: MessageFramer

  init(_ call: Call) {
    self.client = call.client
    self.streamType = call.method.streamType
    self.framer = MessageFramer(
      wire: call.client.wire,
      streamType: call.method.streamType,
      compression: call.client.config.compression,
      requestCompression: call.options.requestCompression,
      maximumSize: call.client.config.limits.maximumSentMessageSize
    )
  }

  /// The head of a request whose messages follow.
  ///
  /// - Throws: ``ConnectError`` with `invalid_argument` if something in `request` must not be sent.
  func head(of request: HTTPRequest<Void>, timeout: Duration?) throws(ConnectError) -> HTTPStreamRequest {
    try HeaderRules.check(request, for: self.client.wire)
    let wireRequest = self.wireRequest(request, payload: nil, timeout: timeout)
    return self.post(request, wireRequest, .streamed)
  }

  /// The whole of a request with one message: what is to be started, and what is to be written behind that if the
  /// request does not end there.
  ///
  /// - Throws: ``ConnectError``: `invalid_argument` as above, `resource_exhausted` if the message is too large,
  ///   `internal` if it cannot be compressed.
  func whole(
    _ request: HTTPRequest<ByteBuffer>,
    timeout: Duration?
  ) throws(ConnectError) -> (head: HTTPStreamRequest, rest: ByteBuffer?) {
    try HeaderRules.check(request, for: self.client.wire)
    let payload = try self.framer.payload(of: request.message)
    var wireRequest = self.wireRequest(request, payload: payload, timeout: timeout)
    if let target = self.getTarget(request, wireRequest, payload) {
      wireRequest.isGET = true
      let headers = self.client.wire.requestHeaders(request.headers, for: wireRequest)
      var get = HTTPStreamRequest(
        method: .get,
        target: target,
        headers: headers,
        body: .complete(ByteBuffer())
      )
      get.context = request.context
      return (get, nil)
    }
    let body = self.framer.frame(payload)
    guard request.trailers.isEmpty else { return (self.post(request, wireRequest, .streamed), body) }
    return (self.post(request, wireRequest, .complete(body)), nil)
  }

  /// A message as it goes into the body.
  ///
  /// - Throws: ``ConnectError``: `resource_exhausted` if it is too large, `internal` if it cannot be compressed.
  func body(of message: ByteBuffer) throws(ConnectError) -> ByteBuffer {
    self.framer.frame(try self.framer.payload(of: message))
  }

  /// Whether `request` will go as GET, as it is now.
  func goesAsGET(_ request: HTTPRequest<ByteBuffer>) -> Bool {
    guard request.isGET else { return false }
    if case .alwaysEnabled = self.client.config.unaryGET { return request.trailers.isEmpty }
    guard let payload = try? self.framer.payload(of: request.message) else { return false }
    let wireRequest = self.wireRequest(request, payload: payload, timeout: nil)
    return self.getTarget(request, wireRequest, payload) != nil
  }

  private func wireRequest<Message>(
    _ request: HTTPRequest<Message>,
    payload: MessageFramer.Payload?,
    timeout: Duration?
  ) -> WireRequest {
    WireRequest(
      contentType: request.contentType,
      streamType: self.streamType,
      timeout: timeout,
      encoding: self.framer.encoding(for: payload),
      acceptedEncodings: self.client.acceptedEncodings
    )
  }

  private func post<Message>(
    _ request: HTTPRequest<Message>,
    _ wireRequest: WireRequest,
    _ body: HTTPStreamRequest.Body
  ) -> HTTPStreamRequest {
    var post = HTTPStreamRequest(
      method: .post,
      target: request.url.query.map { "\(request.url.path)?\($0)" } ?? request.url.path,
      headers: self.client.wire.requestHeaders(request.headers, for: wireRequest),
      body: body
    )
    post.context = request.context
    return post
  }

  /// Path and query of `request` as GET; nil if it has to go as POST.
  private func getTarget(
    _ request: HTTPRequest<ByteBuffer>,
    _ wireRequest: WireRequest,
    _ payload: MessageFramer.Payload
  ) -> String? {
    guard request.isGET, request.trailers.isEmpty,
      let query = self.client.wire.getQuery(message: payload.bytes, for: wireRequest)
    else { return nil }
    let url = request.url
    let target = url.query.map { "\(url.path)?\($0)&\(query)" } ?? "\(url.path)?\(query)"
    switch self.client.config.unaryGET {
    case .disabled: return nil
    case .alwaysEnabled: return target
    case .enabledForLimitedPayloadSizes(let limit):
      return url.origin.description.utf8.count + target.utf8.count <= limit ? target : nil
    }
  }
}
