internal import SwiftProtobuf

/// A message of a type that its place leaves open: `google.protobuf.Any`, or a `TypedStruct` within it (gRFC A52).
struct ExtensionMessage {
  private enum Content {
    case message(Google_Protobuf_Any)
    /// For types that have no message here.
    case fields(Google_Protobuf_Struct)
  }

  /// The full name of the message type.
  let type: String
  /// The place of the fields.
  let place: FieldPlace
  private let content: Content

  /// - Parameter message: Nil if the field is not present.
  init?(_ message: Google_Protobuf_Any?, at place: FieldPlace) {
    guard let message else {
      place.report("field not present")
      return nil
    }
    guard let type = Self.name(of: message.typeURL, at: place) else { return nil }
    let inner = place.entry("value", type)
    let isTypedStruct =
      type == Xds_Type_V3_TypedStruct.protoMessageName || type == Udpa_Type_V1_TypedStruct.protoMessageName
    guard isTypedStruct else {
      self.type = type
      self.place = inner
      self.content = .message(message)
      return
    }
    // Both kinds have the same fields.
    guard let typed = try? Xds_Type_V3_TypedStruct(serializedBytes: message.value) else {
      inner.report("could not parse")
      return nil
    }
    guard let typedName = Self.name(of: typed.typeURL, at: inner) else { return nil }
    self.type = typedName
    self.place = inner.entry("value", typedName)
    self.content = .fields(typed.value)
  }

  /// The fields of a `TypedStruct`; nil for other messages.
  var fields: Google_Protobuf_Struct? {
    guard case .fields(let fields) = self.content else { return nil }
    return fields
  }

  /// The message, if it is one of this type that can be parsed. Otherwise a problem is reported.
  ///
  /// - Parameter name: Of the message, for the problem.
  func parse<Parsed: Message>(_ type: Parsed.Type, _ name: String) -> Parsed? {
    if case .message(let message) = self.content,
      let parsed = try? Parsed(serializedBytes: message.value)
    {
      return parsed
    }
    self.place.report("could not parse \(name)")
    return nil
  }

  private static func name(of url: String, at place: FieldPlace) -> String? {
    if url.isEmpty {
      place.field("type_url").report("field not present")
      return nil
    }
    guard let slash = url.utf8.lastIndex(of: UInt8(ascii: "/")), url.utf8.index(after: slash) < url.endIndex
    else {
      place.field("type_url").report("invalid value \"\(url)\"")
      return nil
    }
    return String(url[url.utf8.index(after: slash)...])
  }
}
