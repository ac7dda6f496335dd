internal import Foundation
internal import NIOCore

extension ByteBuffer {
  /// A value as JSON, its keys in alphabetical order so that the bytes are the same each time.
  init(json value: some Encodable) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    self.init(bytes: try encoder.encode(value))
  }
}
