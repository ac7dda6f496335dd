internal import CProtobufC

/// Looks for required fields that are not set, in a message and all that it holds.
///
/// C has no presence for required numbers and bytes: in the structs of protoc-c these always count as set.
enum RequiredCheck {
  /// The name of a field that is not set; nil if there is none.
  ///
  /// - Parameter message: Whole, as ``StructCheck`` finds it, or as it was decoded.
  static func missingField(_ message: UnsafeRawPointer, _ table: UnsafePointer<WireTable>) -> String? {
    guard table.pointee.containsRequired else { return nil }
    for index in 0..<table.pointee.fieldCount {
      let field = table.pointee.fields + index
      if field.pointee.isRequired, !self.isSet(field.pointee, message) {
        return table.pointee.descriptor.name(of: field.pointee.descriptor)
      }
      guard let inner = field.pointee.message, inner.pointee.containsRequired else { continue }
      let place = message + Int(field.pointee.offset)
      switch field.pointee.form {
      case .repeated:
        let count = message.load(fromByteOffset: Int(field.pointee.quantifierOffset), as: Int.self)
        guard count > 0, let array = place.load(as: UnsafePointer<UnsafeRawPointer>?.self) else { continue }
        for index in 0..<count {
          if let missing = self.missingField(array[index], inner) { return missing }
        }
      case .oneofMember:
        let setCase = message.load(fromByteOffset: Int(field.pointee.quantifierOffset), as: UInt32.self)
        guard setCase == field.pointee.number else { continue }
        fallthrough
      case .plain, .flagged:
        if let pointer = place.load(as: UnsafeRawPointer?.self),
          let missing = self.missingField(pointer, inner)
        {
          return missing
        }
      }
    }
    return nil
  }

  private static func isSet(_ field: WireTable.Field, _ message: UnsafeRawPointer) -> Bool {
    if field.form == .flagged {
      return message.load(fromByteOffset: Int(field.quantifierOffset), as: Int32.self) != 0
    }
    guard field.kind == .message || field.kind == .string else { return true }
    return message.load(fromByteOffset: Int(field.offset), as: UnsafeRawPointer?.self) != nil
  }
}
