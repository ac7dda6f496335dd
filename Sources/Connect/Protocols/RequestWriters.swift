/// The writers of a client's requests in one protocol.
struct RequestWriters: Sendable {
  private let wire: any WireProtocol
  private let codecName: String
  private let unaryGET: UnaryGET
  private let compression: Compression
  private let acceptedEncodings: AcceptedEncodings
  private let maximumMessageSize: Int?
  private let unary: RequestWriter
  private let stream: RequestWriter

  /// - Parameters:
  ///   - acceptedEncodings: The encodings that requests announce.
  ///   - maximumMessageSize: The limit for a message before compression, in bytes; nil for no limit.
  init(
    wire: any WireProtocol,
    codecName: String,
    unaryGET: UnaryGET,
    compression: Compression,
    acceptedEncodings: AcceptedEncodings,
    maximumMessageSize: Int?
  ) {
    self.wire = wire
    self.codecName = codecName
    self.unaryGET = unaryGET
    self.compression = compression
    self.acceptedEncodings = acceptedEncodings
    self.maximumMessageSize = maximumMessageSize
    func make(isUnary: Bool) -> RequestWriter {
      RequestWriter(
        wire: wire,
        codecName: codecName,
        isUnary: isUnary,
        unaryGET: unaryGET,
        compression: compression,
        requestCompression: .inherited,
        acceptedEncodings: acceptedEncodings,
        maximumMessageSize: maximumMessageSize
      )
    }
    self.unary = make(isUnary: true)
    self.stream = make(isUnary: false)
  }

  /// The writers of requests with another codec.
  func using(codecName: String) -> RequestWriters {
    RequestWriters(
      wire: self.wire,
      codecName: codecName,
      unaryGET: self.unaryGET,
      compression: self.compression,
      acceptedEncodings: self.acceptedEncodings,
      maximumMessageSize: self.maximumMessageSize
    )
  }

  /// - Parameter requestCompression: The request compression of the call.
  func writer(isUnary: Bool, _ requestCompression: RequestCompression) -> RequestWriter {
    if case .inherited = requestCompression { return isUnary ? self.unary : self.stream }
    return RequestWriter(
      wire: self.wire,
      codecName: self.codecName,
      isUnary: isUnary,
      unaryGET: self.unaryGET,
      compression: self.compression,
      requestCompression: requestCompression,
      acceptedEncodings: self.acceptedEncodings,
      maximumMessageSize: self.maximumMessageSize
    )
  }

  /// The writer for the calls of `other`, which writes in another protocol.
  func writer(like other: RequestWriter) -> RequestWriter {
    self.writer(isUnary: other.isUnary, other.requestCompression)
  }
}
