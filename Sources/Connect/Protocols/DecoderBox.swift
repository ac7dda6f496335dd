internal import NIOCore

/// A decoder in a place of its own, where it is changed and asked without being copied. What decoders call,
/// such as a user's `CompressionPool`, may end the call, which does not come here.
final class DecoderBox<Decoder: ResponseDecoder>: BoxedDecoder {
  @exclusivity(unchecked) private(set) var decoder: Decoder

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

/// A ``ResponseDecoder`` in a box; see there for what its functions do.
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
