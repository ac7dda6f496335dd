internal import SwiftProtobuf

/// A field of an options message, or of a message in an option's value.
struct OptionField: Sendable {
  typealias Kind = Google_Protobuf_FieldDescriptorProto.TypeEnum

  var number: Int32
  /// The name; for an extension, the full name.
  var name: String
  var kind: Kind
  /// The full name of the message or the enum.
  var typeName = ""
  var isRepeated = false
  var isExtension = false
}

extension OptionField {
  /// - Parameter extensionName: The full name if the field is an extension.
  init(_ proto: Google_Protobuf_FieldDescriptorProto, extensionName: String? = nil) {
    self.init(
      number: proto.number,
      name: extensionName ?? proto.name,
      kind: proto.type,
      typeName: ProtoText.withoutDot(proto.typeName),
      isRepeated: proto.label == .repeated,
      isExtension: extensionName != nil
    )
  }

  var isMessage: Bool { self.kind == .message || self.kind == .group }
}

/// Finds the fields of options: in the files, or else among the options that protobuf defines.
struct OptionSchema: Sendable {
  /// The options that protobuf itself defines. A set of files need not contain them, or may have an older version.
  private static let standard = WellKnownFiles.file(named: "google/protobuf/descriptor.proto").flatMap {
    try? SymbolIndex([$0])
  }

  private let index: SymbolIndex
  /// Fields found in the files, by the names of messages and enums.
  private var fields: [String: [Int32: OptionField]] = [:]
  private var values: [String: [Int32: String]] = [:]

  init(_ index: SymbolIndex) {
    self.index = index
  }

  mutating func field(_ number: Int32, of message: String) -> OptionField? {
    if self.fields[message] == nil {
      let fields = [self.index, Self.standard].flatMap { $0?.message(message)?.field ?? [] }
      self.fields[message] = Dictionary(fields.map { ($0.number, OptionField($0)) }) { first, _ in first }
    }
    if let field = self.fields[message]?[number] { return field }
    return self.index.extension(of: message, number: number).map {
      OptionField($0.field, extensionName: $0.name)
    }
  }

  /// Whether the message uses the message-set encoding of proto1, with each field in a group.
  func isMessageSet(_ message: String) -> Bool {
    self.index.message(message)?.options.messageSetWireFormat ?? false
  }

  mutating func name(ofValue number: Int32, of enumeration: String) -> String? {
    if self.values[enumeration] == nil {
      let found = self.index.enumeration(enumeration) ?? Self.standard?.enumeration(enumeration)
      let values = (found?.value ?? []).map { ($0.number, $0.name) }
      self.values[enumeration] = Dictionary(values) { first, _ in first }
    }
    return self.values[enumeration]?[number]
  }
}
