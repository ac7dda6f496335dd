internal import Logging

/// Metadata and messages that came in the body of a response, or percent-encoded. Unlike the fields of HTTP they may have any
/// character: ``PeerText`` makes them printable. This counts what was changed, for the log.
struct ReceivedText {
  /// How many values and messages had control characters.
  private(set) var mendedCount = 0
  /// How many fields were dropped, since no field may have their name.
  private(set) var droppedCount = 0

  var isUnchanged: Bool { self.mendedCount == 0 && self.droppedCount == 0 }

  mutating func message(_ text: String) -> String { self.count(text, PeerText.message(text)) }

  /// Adds a field to `fields`, without the white space around its value. A field with an impossible name is dropped.
  mutating func add(name: String, value: String, to fields: inout Headers) {
    guard FieldName.isToken(name) else {
      self.droppedCount += 1
      return
    }
    let value = FieldSpace.trim(value)
    fields.add(name: name, value: self.count(value, PeerText.value(value)))
  }

  mutating func add(_ other: ReceivedText) {
    self.mendedCount += other.mendedCount
    self.droppedCount += other.droppedCount
  }

  private mutating func count(_ text: String, _ printable: String) -> String {
    if text != printable { self.mendedCount += 1 }
    return printable
  }

  func note(in logger: Logger, _ method: MethodInfo) {
    logger.debug(
      "a response has control characters, or metadata with names that no field may have",
      metadata: [
        "rpc.method": "\(method.path)",
        "mended": "\(self.mendedCount)",
        "dropped": "\(self.droppedCount)",
      ]
    )
  }
}
