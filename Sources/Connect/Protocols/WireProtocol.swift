internal import NIOCore

/// A protocol on the wire: how an RPC becomes an HTTP request, and an HTTP response an RPC's results.
///
/// It sits below the interceptors and holds no state; each attempt of a call has a ``ResponseDecoder``.
protocol WireProtocol: Sendable {
  /// The name that users know: `connect`.
  var name: String { get }

  /// Whether it needs HTTP/2, so that a connection without TLS has to begin with it.
  var requiresHTTP2: Bool { get }

  /// Whether header or trailer `name` (in lower case) is this protocol's own, so that a user must not set it.
  func owns(headerName name: String) -> Bool

  /// The content-type of a request.
  func contentType(codecName: String, isUnary: Bool) -> String

  /// Whether the messages of such a call are enveloped. Then a body holds any number of messages, and each says whether
  /// it is compressed.
  func envelopesMessages(of streamType: StreamType) -> Bool

  /// Whether bodies are base64. Each piece of a request's body then has its own padding.
  var sendsBase64: Bool { get }

  /// The piece of a request's body that carries `message`.
  func frame(_ message: consuming ByteBuffer, isCompressed: Bool, streamType: StreamType) -> ByteBuffer

  /// The headers that go on the wire: the protocol's own, and then `headers`, which were checked.
  func requestHeaders(_ headers: Headers, for request: WireRequest) -> Headers

  /// The header that tells the server the time left until the deadline.
  func timeoutField(_ timeout: Duration) -> Headers.Field

  /// Whether unary requests can go as GET.
  var supportsGET: Bool { get }

  /// The query of a GET request that carries `message`; nil if the protocol has no GET.
  func getQuery(message: ByteBuffer, for request: WireRequest) -> String?

  /// A decoder for one response.
  ///
  /// - Parameters:
  ///   - contentType: The content-type of the request, which the response's has to match.
  ///   - maximumMessageSize: The limit for one received message, in bytes, after decompression.
  ///   - maximumMetadataSize: The limit for metadata that come in the body, counted like a header list.
  ///   - acceptedEncodings: The encodings that the request has announced.
  ///   - buffers: Where memory for large messages comes from.
  func makeDecoder(
    contentType: String,
    streamType: StreamType,
    maximumMessageSize: Int,
    maximumMetadataSize: Int,
    acceptedEncodings: AcceptedEncodings,
    buffers: BodyBuffers?
  ) -> ResponseReader
}

extension WireProtocol {
  var sendsBase64: Bool { false }

  var supportsGET: Bool { false }

  func getQuery(message: ByteBuffer, for request: WireRequest) -> String? { nil }
}

/// The facts that determine a protocol's own headers of a request.
struct WireRequest {
  var contentType: String
  var streamType: StreamType
  /// The time left until the deadline; more than zero. Nil for no deadline.
  var timeout: Duration?
  /// The encoding of the body, or that of enveloped messages, each of which says whether it is compressed.
  var encoding: String?
  var acceptedEncodings = AcceptedEncodings.none
  var isGET = false
}

/// Decodes one response: bytes go in as they arrive, results come out on demand.
///
/// The results end with exactly one `.complete`. Any fault of a response becomes the error in `.complete`, after the
/// messages that arrived completely before. Once `.complete` came out, input is ignored and ``next()`` returns nil.
protocol ResponseDecoder {
  mutating func receive(_ head: HTTPResponseHead)
  mutating func receive(_ bytes: ByteBuffer)
  /// The response's body ended in order.
  mutating func receiveEnd(trailers: Headers)
  /// The response broke off; `error` is the end, unless a complete end has arrived before.
  mutating func fail(_ error: ConnectError)

  /// The next result; nil if more has to arrive. A unary response is `.headers`, `.message`, `.complete`, or `.headers`
  /// and `.complete` with an error.
  mutating func next() -> StreamResult<ByteBuffer>?

  /// The next result's message, if the result is a message and has arrived; nil does not mean the end. A faster form of
  /// ``next()``, for the many messages of a stream.
  mutating func nextPlainMessage() -> ByteBuffer?

  /// The whole response at once, for a unary response that counts only as a whole. Nil for other responses, or if more
  /// has to arrive.
  mutating func takeWhole() -> SingleMessage?

  /// Whether the response counts only as a whole, and its end has not arrived. Then there are no results yet.
  mutating func awaitsEnd() -> Bool

  /// To be called when there is no demand for now. Afterwards, buffered messages hold little more memory than they have
  /// bytes.
  mutating func settle()

  /// What was changed in texts of the response. To be called at the end.
  mutating func receivedText() -> ReceivedText

  /// How many of the received bytes the decoder still holds: partial messages, and whole messages that were not yet
  /// taken.
  var bufferedByteCount: Int { mutating get }
}

extension ResponseDecoder {
  mutating func takeWhole() -> SingleMessage? { nil }
  func awaitsEnd() -> Bool { false }
  func receivedText() -> ReceivedText { ReceivedText() }
}
