internal import NIOCore
internal import SwiftProtobuf

/// SwiftProtobuf's binary encoding, from and to `ByteBuffer` without a copy in between.
enum ProtobufBytes {
  static func encode(_ message: some SwiftProtobuf.Message, deterministic: Bool) throws -> ByteBuffer {
    var options = BinaryEncodingOptions()
    options.useDeterministicOrdering = deterministic
    let bytes: ContiguousByteBuffer = try message.serializedBytes(options: options)
    return bytes.buffer
  }

  static func decode<M: SwiftProtobuf.Message>(_ type: M.Type, from bytes: ByteBuffer) throws -> M {
    try M(serializedBytes: ContiguousByteBuffer(bytes))
  }
}

/// Lets SwiftProtobuf read from a `ByteBuffer` and write into one that has room for an envelope's prefix in
/// front of the message.
struct ContiguousByteBuffer: SwiftProtobufContiguousBytes {
  private(set) var buffer: ByteBuffer

  init(_ buffer: ByteBuffer) {
    self.buffer = buffer
  }

  init(repeating byte: UInt8, count: Int) {
    self.buffer = ByteBuffer(withHeadroomFor: count)
    self.buffer.writeRepeatingByte(byte, count: count)
  }

  init(_ sequence: some Sequence<UInt8>) {
    self.buffer = ByteBuffer(withHeadroomFor: sequence.underestimatedCount)
    self.buffer.writeBytes(sequence)
  }

  var count: Int { self.buffer.readableBytes }

  func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
    try self.buffer.withUnsafeReadableBytes(body)
  }

  mutating func withUnsafeMutableBytes<R>(_ body: (UnsafeMutableRawBufferPointer) throws -> R) rethrows -> R {
    try self.buffer.withUnsafeMutableReadableBytes(body)
  }
}
