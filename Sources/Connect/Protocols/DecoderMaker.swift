/// Makes the decoders of a client's responses.
struct DecoderMaker: Sendable {
  let wire: any WireProtocol
  /// The encodings that requests announce.
  let acceptedEncodings: AcceptedEncodings
  /// The largest message that is received, in bytes, after decompression.
  let maximumMessageSize: Int
  /// Memory for large messages; nil for memory of their own.
  var buffers: BodyBuffers?

  /// - Parameters:
  ///   - contentType: The content type of the request.
  ///   - maximumMessageSize: The call's limit for a message; the client's counts if it is lower.
  ///   - maximumMetadataSize: The limit for metadata in the body, in bytes.
  func makeDecoder(
    contentType: String,
    streamType: StreamType,
    maximumMessageSize: Int,
    maximumMetadataSize: Int
  ) -> ResponseReader {
    self.wire.makeDecoder(
      contentType: contentType,
      streamType: streamType,
      maximumMessageSize: min(maximumMessageSize, self.maximumMessageSize),
      maximumMetadataSize: maximumMetadataSize,
      acceptedEncodings: self.acceptedEncodings,
      buffers: self.buffers
    )
  }

  /// The response of a unary call, for a ``ResponseParser``.
  ///
  /// - Parameter maximumMessageSize: The call's limit for a message; the client's counts if it is lower.
  func makeParsed(_ reader: ResponseReader, of method: MethodInfo, _ maximumMessageSize: Int)
    -> ResponseReader
  {
    ParsedResponse(
      reader,
      of: method,
      maximumMessageSize: min(maximumMessageSize, self.maximumMessageSize),
      // Prefixes, and trailers in the body.
      maximumFraming: 1 << 20,
      acceptedEncodings: self.acceptedEncodings
    )
  }

  /// Uses the memory of a large message again, which was decoded.
  func reclaim(_ response: ResponseReader, on executor: any CallExecutor) {
    response.hasLent = false
    response.lent.giveBack(to: self.buffers, on: executor)
  }
}
