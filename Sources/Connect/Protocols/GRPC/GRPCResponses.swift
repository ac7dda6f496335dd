internal import NIOCore

/// Decodes the response of a call, <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#responses>:
/// headers, enveloped messages, and trailers with the status. The same for unary calls and for streams.
///
/// A response without body and trailers has its status in the headers ("trailers-only"). This also holds if the end of
/// the stream arrives separately, or if the trailers are empty (in gRPC-Web: a frame without fields). A status in the
/// headers of other responses is ignored. With another HTTP status than 200, a status from the server counts; without
/// one, the HTTP status counts. ``GRPCWebResponseDecoder`` uses this decoder with trailers in the body.
struct GRPCResponseDecoder: ResponseDecoder {
  enum TrailerPlace {
    case http
    case body
  }

  private let baseContentType: String
  private let contentType: String
  private let trailerPlace: TrailerPlace
  private let maximumMetadataSize: Int

  private var response: EnvelopedResponse
  /// The size of the body so far, in bytes.
  private var bodySize = 0
  private var bodyTrailers: Headers?
  private var text = ReceivedText()
  /// The beginning of the body of a response with another status than 200.
  private var errorText: ByteBuffer?

  /// - Parameters:
  ///   - baseContentType: The protocol's content-type without a codec.
  ///   - contentType: The content-type of the request.
  init(
    baseContentType: String,
    contentType: String,
    maximumMessageSize: Int,
    maximumMetadataSize: Int = HeaderListSize.defaultLimit,
    acceptedEncodings: AcceptedEncodings = .none,
    buffers: BodyBuffers? = nil,
    trailerPlace: TrailerPlace = .http
  ) {
    self.baseContentType = baseContentType
    self.contentType = contentType
    self.trailerPlace = trailerPlace
    self.maximumMetadataSize = maximumMetadataSize
    self.response = EnvelopedResponse(
      encodingHeader: "grpc-encoding",
      endFlag: trailerPlace == .body ? GRPCWebTrailers.flag : 0,
      maximumMessageSize: maximumMessageSize,
      maximumEndSize: maximumMetadataSize,
      acceptedEncodings: acceptedEncodings,
      buffers: buffers
    )
  }

  var bufferedByteCount: Int { self.response.bufferedByteCount }

  mutating func receive(_ head: HTTPResponseHead) {
    let error = GRPCProtocol.contentTypeError(
      of: head.headers,
      base: self.baseContentType,
      expected: self.contentType
    )
    self.response.receive(head, contentTypeError: error)
  }

  mutating func receive(_ bytes: ByteBuffer) {
    guard bytes.readableBytes > 0, let head = self.response.openHead else { return }
    self.bodySize += bytes.readableBytes
    if head.status == 200 {
      self.response.receive(bytes)
    } else if self.errorText == nil {
      self.errorText = ByteBuffer(bytes: bytes.readableBytesView.prefix(ResponseText.maximumBytes))
    }
  }

  mutating func receiveEnd(trailers: Headers) { self.response.receiveEnd(trailers: trailers) }

  mutating func fail(_ error: ConnectError) { self.response.fail(error) }

  mutating func next() -> StreamResult<ByteBuffer>? {
    if self.response.isFinished { return nil }
    do throws(ConnectError) {
      switch try self.response.next() {
      case .result(let result): return result
      case .end(let block):
        self.bodyTrailers = try GRPCWebTrailers.parse(
          block,
          maximumSize: self.maximumMetadataSize,
          &self.text
        )
      case nil: break
      }
    } catch {
      return self.complete(error)
    }
    switch self.response.input {
    case .open: return nil
    case .ended(let trailers): return self.completeEnded(httpTrailers: trailers)
    // Trailers that arrived in the body before the failure say how the call ended.
    case .failed where self.bodyTrailers != nil: return self.completeEnded(httpTrailers: Headers())
    case .failed(let error): return self.complete(ResponseRules.brokenOff(error, self.response.head))
    }
  }

  mutating func nextPlainMessage() -> ByteBuffer? { self.response.nextPlainMessage() }

  mutating func settle() { self.response.settle() }

  mutating func receivedText() -> ReceivedText { self.text }

  // MARK: Ends

  private mutating func completeEnded(httpTrailers: Headers) -> StreamResult<ByteBuffer> {
    guard let head = self.response.head else {
      return self.complete(
        ConnectError(code: .internalError, message: "the HTTP client ended the response without a head")
      )
    }
    let trailers = self.trailerPlace == .http ? httpTrailers : self.bodyTrailers ?? Headers()
    let isTrailersOnly = trailers.isEmpty && (self.bodySize == 0 || self.isEmptyTrailerFrame)
    let status = GRPCStatus(isTrailersOnly ? head.headers : trailers)
    if let status { self.text.add(status.text) }
    guard head.status == 200 else {
      return self.complete(
        status?.error ?? ResponseRules.statusError(head, body: self.errorText ?? ByteBuffer()),
        trailers: isTrailersOnly ? Headers() : trailers
      )
    }
    guard let status else {
      return self.complete(self.missingStatus(trailers: trailers), trailers: trailers)
    }
    if let error = status.error {
      return isTrailersOnly
        ? self.completeTrailersOnly(error, head.headers)
        : self.complete(error, trailers: trailers)
    }
    if let error = self.excessError { return self.complete(error, trailers: trailers) }
    if isTrailersOnly { return self.completeTrailersOnly(nil, head.headers) }
    self.response.finish()
    return .complete(code: .ok, error: nil, trailers: GRPCStatus.metadata(of: trailers))
  }

  /// Whether the body is an empty trailer frame. Servers send such a frame after a status in the headers.
  private var isEmptyTrailerFrame: Bool { self.bodyTrailers != nil && self.bodySize == Envelope.prefixLength }

  /// Bytes of the body that are no whole message, or are behind the trailers.
  private var excessError: ConnectError? { self.response.excessError(behind: "trailers") }

  /// As in connect-go: without trailers the response is broken (`internal`), with other trailers it is `unknown`.
  private func missingStatus(trailers: Headers) -> ConnectError {
    if let error = self.excessError { return error }
    var error = ConnectError(
      code: trailers.isEmpty ? .internalError : .unknown,
      message: "response ended without a grpc-status"
    )
    if trailers.isEmpty, self.trailerPlace == .http { error.unnamed = .trailers }
    return error
  }

  private mutating func complete(
    _ error: ConnectError,
    trailers: Headers = Headers()
  ) -> StreamResult<ByteBuffer> {
    self.response.discard()
    self.response.finish()
    let trailers = GRPCStatus.metadata(of: trailers)
    let headers = self.response.head.map { GRPCStatus.metadata(of: $0.headers) }
    let error = ResponseRules.complete(error, from: self.response.head, headers: headers, trailers: trailers)
    return .complete(code: error.code, error: error, trailers: trailers)
  }

  /// All headers but the content-type are trailers. They were delivered as headers, too, before it was known that no
  /// body would follow.
  private mutating func completeTrailersOnly(
    _ error: ConnectError?,
    _ fields: Headers
  ) -> StreamResult<ByteBuffer> {
    self.response.finish()
    var trailers = GRPCStatus.metadata(of: fields)
    let error = error.map { ResponseRules.complete($0, from: self.response.head, headers: trailers) }
    trailers.remove(name: "content-type")
    return .complete(code: error?.code ?? .ok, error: error, trailers: trailers)
  }
}
