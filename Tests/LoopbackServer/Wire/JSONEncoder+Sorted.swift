internal import Foundation

extension JSONEncoder {
  /// Writes the same value always in the same way.
  static var sorted: JSONEncoder {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return encoder
  }
}
