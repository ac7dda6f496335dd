internal import NIOCore

/// Holds a decoder as an object, so that it is changed in place and never copied.
final class DecoderBox<Decoder: ResponseDecoder>: BoxedDecoder {
  /// `@exclusivity(unchecked)`: decoders are large structs, and taking one out for each change costs more than the run-time
  /// check. Accesses do not overlap: a `CompressionPool` is the only code of users that a decoder calls. A pool may end the
  /// call, which then does not use the decoder, and cannot make the call read another result.
  @exclusivity(unchecked) private var decoder: Decoder

  init(_ decoder: Decoder) {
    self.decoder = decoder
  }

  var bufferedByteCount: Int { self.decoder.bufferedByteCount }

  func receive(_ head: HTTPResponseHead) { self.decoder.receive(head) }
  func receive(_ bytes: ByteBuffer) { self.decoder.receive(bytes) }
  func receiveEnd(trailers: Headers) { self.decoder.receiveEnd(trailers: trailers) }
  func fail(_ error: ConnectError) { self.decoder.fail(error) }
  func next() -> StreamResult<ByteBuffer>? { self.decoder.next() }
  func nextPlainMessage() -> ByteBuffer? { self.decoder.nextPlainMessage() }
  func settle() { self.decoder.settle() }
}

/// A ``ResponseDecoder`` as an object. The functions are described there.
protocol BoxedDecoder: AnyObject {
  func receive(_ head: HTTPResponseHead)
  func receive(_ bytes: ByteBuffer)
  func receiveEnd(trailers: Headers)
  func fail(_ error: ConnectError)
  func next() -> StreamResult<ByteBuffer>?
  func nextPlainMessage() -> ByteBuffer?
  func settle()
  var bufferedByteCount: Int { get }
}

extension ResponseDecoder {
  var boxed: DecoderBox<Self> { DecoderBox(self) }
}
