internal import Connect
internal import NIOCore

extension ProtobufReader {
  /// - Returns: Nil if the bytes are not a message.
  static func fields(of bytes: ByteBuffer) -> [Field]? {
    var reader = ProtobufReader(bytes)
    var fields: [Field] = []
    while let field = reader.next() { fields.append(field) }
    return reader.isAtEnd ? fields : nil
  }

  /// The extension in an item of a message set, as a field.
  static func messageSetItem(_ bytes: ByteBuffer) -> Field? {
    guard let parts = self.fields(of: bytes) else { return nil }
    var number: Int32?
    var message = ByteBuffer()
    for part in parts {
      switch part {
      case (2, .varint(let bits)): number = Int32(exactly: bits)
      case (3, .bytes(let bytes)): message = bytes
      default: return nil
      }
    }
    return number.map { ($0, .bytes(message)) }
  }
}
