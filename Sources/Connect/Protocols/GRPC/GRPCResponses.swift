internal import NIOCore

/// Decodes the response of a call, <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#responses>:
/// headers, enveloped messages, and trailers with the status. The same for unary calls and for streams.
///
/// A response without body and trailers has its status in the headers ("trailers-only"); there alone it counts.
/// With another HTTP status than 200, a status that the server gave is honoured, else the HTTP status counts.
/// ``GRPCWebResponseDecoder`` uses it with trailers that come in the body.
struct GRPCResponseDecoder: ResponseDecoder {
  enum TrailerPlace {
    case http
    case body
  }

  private let baseContentType: String
  private let contentType: String
  private let trailerPlace: TrailerPlace
  private let maximumMessageSize: Int
  private let maximumMetadataSize: Int
  private let acceptedEncodings: AcceptedEncodings
  private var encoding = ResponseEncoding(pool: nil, header: "grpc-encoding")

  private(set) var head: HTTPResponseHead?
  private var isHeadDelivered = false
  private var hasBody = false
  private var envelopes: EnvelopeDecoder
  private var bodyTrailers: Headers?
  /// The beginning of the body of a response with another status than 200.
  private var errorText: ByteBuffer?

  private var input = Input.open
  private var output = Output.open

  private enum Input {
    case open
    case ended(trailers: Headers)
    case failed(ConnectError)
  }

  private enum Output {
    case open
    case failing(ConnectError)
    case done
  }

  /// - Parameters:
  ///   - baseContentType: The protocol's content-type without a codec.
  ///   - contentType: The request's.
  init(
    baseContentType: String,
    contentType: String,
    maximumMessageSize: Int,
    maximumMetadataSize: Int = HeaderListSize.defaultLimit,
    acceptedEncodings: AcceptedEncodings = .none,
    trailerPlace: TrailerPlace = .http
  ) {
    self.baseContentType = baseContentType
    self.contentType = contentType
    self.trailerPlace = trailerPlace
    self.maximumMessageSize = maximumMessageSize
    self.maximumMetadataSize = maximumMetadataSize
    self.acceptedEncodings = acceptedEncodings
    self.envelopes = EnvelopeDecoder(
      maximumMessageSize: maximumMessageSize,
      endFlag: trailerPlace == .body ? GRPCWebTrailers.flag : 0,
      maximumEndSize: maximumMetadataSize
    )
  }

  var bufferedByteCount: Int { self.envelopes.bufferedByteCount }

  mutating func receive(_ head: HTTPResponseHead) {
    guard case .open = self.output, case .open = self.input, self.head == nil else { return }
    self.head = head
    guard head.status == 200 else { return }
    if let error = GRPCProtocol.contentTypeError(
      of: head.headers,
      base: self.baseContentType,
      expected: self.contentType
    ) {
      self.output = .failing(error)
      return
    }
    do throws(ConnectError) {
      self.encoding = try self.acceptedEncodings.encoding(of: head.headers, header: "grpc-encoding")
    } catch {
      self.output = .failing(error)
    }
  }

  mutating func receive(_ bytes: ByteBuffer) {
    guard case .open = self.output, case .open = self.input, let head = self.head else { return }
    guard bytes.readableBytes > 0 else { return }
    self.hasBody = true
    if head.status == 200 {
      self.envelopes.receive(bytes)
    } else if self.errorText == nil {
      self.errorText = ByteBuffer(bytes: bytes.readableBytesView.prefix(ResponseText.maximumBytes))
    }
  }

  mutating func receiveEnd(trailers: Headers) {
    guard case .open = self.input else { return }
    self.input = .ended(trailers: trailers)
  }

  mutating func fail(_ error: ConnectError) {
    guard case .open = self.input else { return }
    self.input = .failed(error)
  }

  mutating func next() -> StreamResult<ByteBuffer>? {
    if case .done = self.output { return nil }
    if let head = self.head, !self.isHeadDelivered {
      self.isHeadDelivered = true
      return .headers(head.headers)
    }
    if case .failing(let error) = self.output { return self.complete(error) }
    do throws(ConnectError) {
      if self.bodyTrailers == nil, let message = try self.nextMessage() { return .message(message) }
    } catch {
      return self.complete(error)
    }
    switch self.input {
    case .open: return nil
    case .ended(let trailers): return self.completeEnded(httpTrailers: trailers)
    case .failed(let error): return self.completeFailed(error)
    }
  }

  mutating func nextPlainMessage() -> ByteBuffer? {
    guard self.isHeadDelivered, self.bodyTrailers == nil, case .open = self.output else { return nil }
    return self.envelopes.nextPlainMessage()
  }

  mutating func settle() { self.envelopes.settle() }

  // MARK: Messages

  /// The next message; nil if there is none yet, or if the trailers were reached.
  private mutating func nextMessage() throws(ConnectError) -> ByteBuffer? {
    guard let envelope = try self.envelopes.next() else { return nil }
    let knownFlags = Envelope.compressedFlag | (self.trailerPlace == .body ? GRPCWebTrailers.flag : 0)
    guard envelope.flags & ~knownFlags == 0 else {
      throw ConnectError(
        code: .internalError,
        message: "received envelope with unknown flags \(envelope.flags)"
      )
    }
    guard envelope.flags & ~Envelope.compressedFlag != 0 else {
      return try self.encoding.message(of: envelope, maximumSize: self.maximumMessageSize)
    }
    let block = try self.encoding.message(of: envelope, maximumSize: self.maximumMetadataSize)
    self.bodyTrailers = try GRPCWebTrailers.parse(block, maximumSize: self.maximumMetadataSize)
    return nil
  }

  // MARK: Ends

  private mutating func completeEnded(httpTrailers: Headers) -> StreamResult<ByteBuffer> {
    guard let head = self.head else {
      return self.complete(ConnectError(code: .internalError, message: "response ended without a head"))
    }
    let trailers = self.trailerPlace == .http ? httpTrailers : self.bodyTrailers ?? Headers()
    let isTrailersOnly = !self.hasBody && trailers.isEmpty
    let status = GRPCStatus(isTrailersOnly ? head.headers : trailers)
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
    self.output = .done
    return .complete(code: .ok, error: nil, trailers: GRPCStatus.metadata(of: trailers))
  }

  /// The response broke off; trailers that came in the body before say how the call ended.
  private mutating func completeFailed(_ error: ConnectError) -> StreamResult<ByteBuffer> {
    if let head = self.head, head.status != 200 {
      return self.complete(ResponseRules.brokenOff(error, head))
    }
    return self.bodyTrailers == nil ? self.complete(error) : self.completeEnded(httpTrailers: Headers())
  }

  /// Bytes of the body that are no whole message, or are behind the trailers.
  private var excessError: ConnectError? {
    let count = self.envelopes.bufferedByteCount
    guard count > 0 else { return nil }
    return ConnectError(
      code: .internalError,
      message: self.bodyTrailers == nil
        ? "response ended in the middle of a message" : "received \(count) bytes behind the trailers"
    )
  }

  /// As in connect-go: without any trailers the response is broken, with others it is not understood.
  private func missingStatus(trailers: Headers) -> ConnectError {
    if let error = self.excessError { return error }
    return ConnectError(
      code: trailers.isEmpty ? .internalError : .unknown,
      message: "response ended without a grpc-status"
    )
  }

  private mutating func complete(
    _ error: ConnectError,
    trailers: Headers = Headers()
  ) -> StreamResult<ByteBuffer> {
    self.envelopes.discard()
    self.output = .done
    let trailers = GRPCStatus.metadata(of: trailers)
    let headers = self.head.map { GRPCStatus.metadata(of: $0.headers) }
    let error = error.inResponse(self.head, headers: headers, trailers: trailers)
    return .complete(code: error.code, error: error, trailers: trailers)
  }

  /// All of the headers but the content-type are trailers then. They were given as headers, too, when nobody
  /// could know yet.
  private mutating func completeTrailersOnly(
    _ error: ConnectError?,
    _ fields: Headers
  ) -> StreamResult<ByteBuffer> {
    self.output = .done
    var trailers = GRPCStatus.metadata(of: fields)
    let error = error?.inResponse(self.head, headers: trailers)
    trailers.remove(name: "content-type")
    return .complete(code: error?.code ?? .ok, error: error, trailers: trailers)
  }
}
