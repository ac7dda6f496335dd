/// Looks for missing required fields in a message and all its nested messages.
///
/// C has no presence for required numbers and bytes: in protoc-c's structs they always count as set.
enum RequiredCheck {
  /// The name of a missing required field; nil if none is missing.
  ///
  /// - Parameter message: A message that was decoded, or that ``StructCheck`` has accepted.
  static func missingField(in message: MessagePointer, of table: MessageTable) -> String? {
    guard table.containsRequired else { return nil }
    for field in table.fields {
      if field.isRequired, !self.isSet(field, in: message) { return table.name(of: field) }
      guard let inner = field.table, inner.containsRequired else { continue }
      switch field.form {
      case .repeated:
        for case let element? in message.elements(of: field).lazy.map(\.message) {
          if let missing = self.missingField(in: element, of: inner) { return missing }
        }
      case .oneofMember where !message.isSelected(field):
        continue
      case .oneofMember, .plain, .flagged:
        if let pointer = message.place(of: field).message,
          let missing = self.missingField(in: pointer, of: inner)
        {
          return missing
        }
      }
    }
    return nil
  }

  private static func isSet(_ field: FieldSchema, in message: MessagePointer) -> Bool {
    if field.form == .flagged { return message.isFlagged(field) }
    guard field.storedKind == .message || field.storedKind == .string else { return true }
    return message.place(of: field).pointer != nil
  }
}
