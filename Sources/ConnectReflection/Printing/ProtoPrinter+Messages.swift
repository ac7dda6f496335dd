internal import SwiftProtobuf

extension ProtoPrinter {
  // MARK: Messages

  mutating func printMessage(_ message: Message, at path: [Int32], scope: String) {
    let head = "\(message.visibility.keyword)message \(message.name)"
    self.block(head, at: self.locations.location(at: path)) {
      $0.printBody(of: message, at: path, scope: scope)
    }
  }

  private mutating func printBody(of message: Message, at path: [Int32], scope: String) {
    let name = scope.isEmpty ? message.name : "\(scope).\(message.name)"
    self.printOptions(message.options, named: "MessageOptions", at: path + [7], scope: scope)
    self.lines.separate()
    self.printElements(self.elements.all(in: message, named: name, at: path), scope: name)
    self.printExtensionRanges(of: message, at: path + [5], scope: scope)
    let ranges = message.reservedRange.map { ProtoText.range(ofFields: $0.start, upTo: $0.end) }
    self.printReserved(ranges, at: path + [9])
    self.printReserved(self.reservedNames(message.reservedName), at: path + [10])
  }

  func reservedNames(_ names: [String]) -> [String] {
    self.isEditions && names.allSatisfy(ProtoText.isIdentifier) ? names : names.map(ProtoText.quoted)
  }

  mutating func printReserved(_ items: [String], at path: [Int32]) {
    for statement in self.locations.statements(at: path, count: items.count) {
      self.lines.statement(
        ["reserved \(items[statement.items].joined(separator: ", "));"],
        at: statement.location
      )
    }
  }

  private mutating func printExtensionRanges(of message: Message, at path: [Int32], scope: String) {
    let ranges = message.extensionRange
    for statement in self.locations.statements(at: path, count: ranges.count) {
      // Options apply to all ranges of a statement.
      var rest = statement.items
      while let first = rest.first {
        let options = ranges[first].options
        let end = rest.first { ranges[$0].options != options } ?? rest.upperBound
        let items = ranges[first..<end].map { ProtoText.range(ofFields: $0.start, upTo: $0.end) }
        let list = self.statements(options, named: "ExtensionRangeOptions", scope: scope)
        let location = first == statement.items.lowerBound ? statement.location : nil
        self.printStatement("extensions \(items.joined(separator: ", "))", list, at: location)
        rest = end..<rest.upperBound
      }
    }
  }

  // MARK: Fields

  mutating func printField(
    _ field: Field,
    at path: [Int32],
    scope: String,
    _ types: MessageBody,
    isOneofMember: Bool
  ) {
    var options = self.statements(field.options, named: "FieldOptions", scope: scope)
    if field.hasJsonName, !field.hasExtendee, field.jsonName != ProtoText.jsonName(of: field.name) {
      options.insert(OptionStatement("json_name", ProtoText.quoted(field.jsonName)), at: 0)
    }
    if field.hasDefaultValue {
      options.insert(OptionStatement("default", field.defaultLiteral), at: 0)
    }
    let declared = types.number(declaredBy: field, isEditions: self.isEditions).map { types.messages[$0] }
    if let entry = declared, field.type == .message {
      let key = self.typeName(of: entry.field[0], in: scope)
      let value = self.typeName(of: entry.field[1], in: scope)
      let head = "map<\(key), \(value)> \(field.name) = \(field.number)"
      self.printStatement(head, options, at: self.locations.location(at: path))
      return
    }
    let label = self.label(of: field, isOneofMember: isOneofMember)
    if let group = declared {
      self.printNotes()
      let tail = options.isEmpty ? "" : " [\(options.map(\.line).joined(separator: ", "))]"
      let name = "\(scope.isEmpty ? "" : "\(scope).")\(group.name)"
      let bodyPath = self.index.place(of: name)?.path ?? []
      var location = self.locations.location(at: path)
      // protoc attributes the comments to the message.
      if let inner = self.locations.location(at: bodyPath) {
        location?.leadingDetachedComments += inner.leadingDetachedComments
        location?.leadingComments += inner.leadingComments
        location?.trailingComments += inner.trailingComments
      }
      self.block("\(label)group \(group.name) = \(field.number)\(tail)", at: location) {
        $0.printBody(of: group, at: bodyPath, scope: scope)
      }
      return
    }
    let head = "\(label)\(self.typeName(of: field, in: scope)) \(field.name) = \(field.number)"
    self.printStatement(head, options, at: self.locations.location(at: path))
  }

  private func label(of field: Field, isOneofMember: Bool) -> String {
    switch field.label {
    case .repeated: "repeated "
    case .required: "required "
    case .optional:
      isOneofMember || self.isEditions || self.file.syntax == "proto3" && !field.proto3Optional
        ? "" : "optional "
    }
  }

  private func typeName(of field: Field, in scope: String) -> String {
    switch field.type {
    case .double: "double"
    case .float: "float"
    case .int64: "int64"
    case .uint64: "uint64"
    case .int32: "int32"
    case .fixed64: "fixed64"
    case .fixed32: "fixed32"
    case .bool: "bool"
    case .string: "string"
    case .bytes: "bytes"
    case .uint32: "uint32"
    case .sfixed32: "sfixed32"
    case .sfixed64: "sfixed64"
    case .sint32: "sint32"
    case .sint64: "sint64"
    case .group, .message, .enum: self.names.name(field.typeName, in: scope)
    }
  }

  mutating func printOneof(
    _ oneof: Google_Protobuf_OneofDescriptorProto,
    _ members: [(Field, path: [Int32])],
    at path: [Int32],
    scope: String,
    _ types: MessageBody
  ) {
    self.block("oneof \(oneof.name)", at: self.locations.location(at: path)) { printer in
      printer.printOptions(oneof.options, named: "OneofOptions", at: path + [2], scope: scope)
      for (field, path) in members {
        printer.printField(field, at: path, scope: scope, types, isOneofMember: true)
      }
    }
  }

  /// - Parameter path: The path of all extensions in the file or message.
  mutating func printExtensions(
    _ fields: [(Field, path: [Int32])],
    at path: [Int32],
    scope: String,
    _ types: MessageBody
  ) {
    guard let (first, firstPath) = fields.first else { return }
    let location = self.locations.location(at: path, around: firstPath)
    self.block("extend \(self.names.name(first.extendee, in: scope))", at: location) { printer in
      for (field, path) in fields {
        printer.printField(field, at: path, scope: scope, types, isOneofMember: false)
      }
    }
  }
}

extension Google_Protobuf_SymbolVisibility {
  /// The keyword in front of a declaration.
  var keyword: String {
    switch self {
    case .visibilityLocal: "local "
    case .visibilityExport: "export "
    case .visibilityUnset: ""
    }
  }
}

extension Google_Protobuf_FieldDescriptorProto {
  fileprivate var defaultLiteral: String {
    switch self.type {
    case .string: ProtoText.quoted(self.defaultValue)
    case .bytes: ProtoText.quotedEscaped(self.defaultValue)
    default: ProtoText.comment(self.defaultValue)
    }
  }
}
