internal import SwiftProtobuf

/// The messages in a message or a file, which fields of the same scope may declare.
struct MessageBody {
  typealias Message = Google_Protobuf_DescriptorProto

  let messages: [Message]
  private let scope: String
  private let numbers: [String: Int]

  init(_ messages: [Message], named scope: String) {
    self.messages = messages
    self.scope = scope
    self.numbers = Dictionary(messages.enumerated().map { ($1.name, $0) }) { first, _ in first }
  }

  init(_ message: Message, named name: String) {
    self.init(message.nestedType, named: name)
  }

  /// The number of the message that is declared with the field: a group, or the entries of a map.
  func number(declaredBy field: Google_Protobuf_FieldDescriptorProto, isEditions: Bool) -> Int? {
    guard field.type == .group && !isEditions || field.type == .message && field.label == .repeated else {
      return nil
    }
    let prefix = self.scope.isEmpty ? "." : ".\(self.scope)."
    guard field.typeName.hasPrefix(prefix) else { return nil }
    guard let number = self.numbers[String(field.typeName.dropFirst(prefix.count))] else { return nil }
    return field.type == .group || self.isMap(number) ? number : nil
  }

  private func isMap(_ number: Int) -> Bool {
    let entry = self.messages[number]
    return entry.options.mapEntry && entry.field.map(\.number) == [1, 2]
  }
}

/// The elements of messages and files, in the order of the source if it is known.
struct ProtoElements {
  typealias Message = Google_Protobuf_DescriptorProto
  typealias Field = Google_Protobuf_FieldDescriptorProto

  enum Element {
    case field(Field, MessageBody)
    case oneof(Google_Protobuf_OneofDescriptorProto, [(Field, path: [Int32])], MessageBody)
    case message(Message)
    case enumeration(Google_Protobuf_EnumDescriptorProto)
    case service(Google_Protobuf_ServiceDescriptorProto)
    case `extension`(Field, MessageBody)
  }

  typealias PlacedElement = (element: Element, path: [Int32])

  let locations: SourceLocations
  let isEditions: Bool

  func all(in file: Google_Protobuf_FileDescriptorProto) -> [PlacedElement] {
    let services = file.service.enumerated().map { (Element.service($1), [6, Int32($0)]) }
    let body = Message.with {
      $0.extension = file.extension
      $0.nestedType = file.messageType
      $0.enumType = file.enumType
    }
    let others = self.elements(of: body, named: file.package, at: [], extensions: 7, messages: 4, enums: 5)
    return self.locations.inSourceOrder(services + others, path: \.path)
  }

  func all(in message: Message, named name: String, at path: [Int32]) -> [PlacedElement] {
    let elements = self.elements(of: message, named: name, at: path, extensions: 6, messages: 3, enums: 4)
    return self.locations.inSourceOrder(elements, path: \.path)
  }

  /// - Parameters:
  ///   - extensions: The number of the extensions in the descriptor.
  ///   - messages: The number of the messages.
  ///   - enums: The number of the enums.
  private func elements(
    of message: Message,
    named name: String,
    at path: [Int32],
    extensions: Int32,
    messages: Int32,
    enums: Int32
  ) -> [PlacedElement] {
    let types = MessageBody(message, named: name)
    var elements: [PlacedElement] = []
    var next = 0
    let fields = message.field + message.extension
    let declared = Set(fields.compactMap { types.number(declaredBy: $0, isEditions: self.isEditions) })
    // The messages of groups must keep their places, since the order of messages is part of the descriptor.
    func addMessages(to end: Int) {
      for number in min(next, end)..<end where !declared.contains(number) {
        elements.append((.message(message.nestedType[number]), path + [messages, Int32(number)]))
      }
      next = max(next, end)
    }
    var oneofs: [Int32: Int] = [:]
    for (number, field) in message.field.enumerated() {
      let fieldPath = path + [2, Int32(number)]
      if let type = types.number(declaredBy: field, isEditions: self.isEditions) { addMessages(to: type) }
      let isMember = field.hasOneofIndex && !field.proto3Optional
      guard isMember, message.oneofDecl.indices.contains(Int(field.oneofIndex)) else {
        elements.append((.field(field, types), fieldPath))
        continue
      }
      if let place = oneofs[field.oneofIndex],
        case .oneof(let oneof, let members, _) = elements[place].element
      {
        elements[place].element = .oneof(oneof, members + [(field, fieldPath)], types)
        continue
      }
      oneofs[field.oneofIndex] = elements.count
      let oneof = message.oneofDecl[Int(field.oneofIndex)]
      elements.append((.oneof(oneof, [(field, fieldPath)], types), path + [8, field.oneofIndex]))
    }
    for (number, field) in message.extension.enumerated() {
      if let type = types.number(declaredBy: field, isEditions: self.isEditions) { addMessages(to: type) }
      elements.append((.extension(field, types), path + [extensions, Int32(number)]))
    }
    addMessages(to: message.nestedType.count)
    for (number, proto) in message.enumType.enumerated() {
      elements.append((.enumeration(proto), path + [enums, Int32(number)]))
    }
    return elements
  }
}
