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

/// The elements of a message or a file, in the order of the source if it is known.
extension ProtoPrinter {
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

  struct PlacedElement {
    var element: Element
    var path: [Int32]
  }

  func elements(ofFile file: File) -> [PlacedElement] {
    let types = MessageBody(file.messageType, named: file.package)
    var elements: [PlacedElement] = []
    var next = 0
    let groups = Set(
      file.extension.compactMap { types.number(declaredBy: $0, isEditions: self.isEditions) }
    )
    // The messages of groups must keep their places, since the order of messages is part of the descriptor.
    func addMessages(to end: Int) {
      for number in min(next, end)..<end where !groups.contains(number) {
        elements.append(PlacedElement(element: .message(file.messageType[number]), path: [4, Int32(number)]))
      }
      next = max(next, end)
    }
    for (number, service) in file.service.enumerated() {
      elements.append(PlacedElement(element: .service(service), path: [6, Int32(number)]))
    }
    for (number, field) in file.extension.enumerated() {
      if let group = types.number(declaredBy: field, isEditions: self.isEditions) { addMessages(to: group) }
      elements.append(PlacedElement(element: .extension(field, types), path: [7, Int32(number)]))
    }
    addMessages(to: file.messageType.count)
    for (number, proto) in file.enumType.enumerated() {
      elements.append(PlacedElement(element: .enumeration(proto), path: [5, Int32(number)]))
    }
    return self.inSourceOrder(elements)
  }

  func elements(of message: Message, named name: String, at path: [Int32]) -> [PlacedElement] {
    let types = MessageBody(message, named: name)
    var elements: [PlacedElement] = []
    var next = 0
    let fields = message.field + message.extension
    let declared = Set(fields.compactMap { types.number(declaredBy: $0, isEditions: self.isEditions) })
    func addMessages(to end: Int) {
      for number in min(next, end)..<end where !declared.contains(number) {
        let path = path + [3, Int32(number)]
        elements.append(PlacedElement(element: .message(message.nestedType[number]), path: path))
      }
      next = max(next, end)
    }
    var oneofs: [Int32: Int] = [:]
    for (number, field) in message.field.enumerated() {
      let fieldPath = path + [2, Int32(number)]
      if let type = types.number(declaredBy: field, isEditions: self.isEditions) { addMessages(to: type) }
      let isMember = field.hasOneofIndex && !field.proto3Optional
      guard isMember, message.oneofDecl.indices.contains(Int(field.oneofIndex)) else {
        elements.append(PlacedElement(element: .field(field, types), path: fieldPath))
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
      elements.append(
        PlacedElement(
          element: .oneof(oneof, [(field, fieldPath)], types),
          path: path + [8, field.oneofIndex]
        )
      )
    }
    for (number, field) in message.extension.enumerated() {
      if let type = types.number(declaredBy: field, isEditions: self.isEditions) { addMessages(to: type) }
      elements.append(PlacedElement(element: .extension(field, types), path: path + [6, Int32(number)]))
    }
    addMessages(to: message.nestedType.count)
    for (number, proto) in message.enumType.enumerated() {
      elements.append(PlacedElement(element: .enumeration(proto), path: path + [4, Int32(number)]))
    }
    return self.inSourceOrder(elements)
  }

  private func inSourceOrder(_ elements: [PlacedElement]) -> [PlacedElement] {
    let placed = elements.enumerated().compactMap { number, element in
      self.locations.start(of: element.path).map { (start: $0, number: number) }
    }
    guard placed.count == elements.count else { return elements }
    return placed.sorted { ($0.start, $0.number) < ($1.start, $1.number) }.map { elements[$0.number] }
  }

  // MARK: Printing

  mutating func printElements(_ elements: [PlacedElement], scope: String) {
    var number = 0
    while number < elements.count {
      let (element, path) = (elements[number].element, elements[number].path)
      number += 1
      switch element {
      case .field(let field, let types):
        self.printField(field, at: path, scope: scope, types, isOneofMember: false)
      case .oneof(let oneof, let members, let types):
        self.separate()
        self.printOneof(oneof, members, at: path, scope: scope, types)
        self.separate()
      case .message(let message):
        self.separate()
        self.printMessage(message, at: path, scope: scope)
        self.separate()
      case .enumeration(let enumeration):
        self.separate()
        self.printEnum(enumeration, at: path, scope: scope)
        self.separate()
      case .service(let service):
        self.separate()
        self.printService(service, at: path, scope: scope)
        self.separate()
      case .extension(let first, let types):
        var fields = [(first, path)]
        while number < elements.count, case .extension(let field, _) = elements[number].element,
          field.extendee == first.extendee,
          self.statement(ofExtensionAt: elements[number].path) == self.statement(ofExtensionAt: path)
        {
          fields.append((field, elements[number].path))
          number += 1
        }
        self.separate()
        self.printExtensions(fields, at: Array(path.dropLast()), scope: scope, types)
        self.separate()
      }
    }
  }

  /// The location of the `extend` block around an extension.
  private func statement(ofExtensionAt path: [Int32]) -> [Int32]? {
    self.locations.location(at: Array(path.dropLast()), around: path)?.span
  }
}
