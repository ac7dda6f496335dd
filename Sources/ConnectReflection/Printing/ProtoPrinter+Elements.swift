internal import SwiftProtobuf

extension ProtoPrinter {
  typealias Message = Google_Protobuf_DescriptorProto
  typealias Field = Google_Protobuf_FieldDescriptorProto

  var elements: ProtoElements { ProtoElements(locations: self.locations, isEditions: self.isEditions) }

  mutating func printElements(_ elements: [ProtoElements.PlacedElement], scope: String) {
    var number = 0
    while number < elements.count {
      let (element, path) = (elements[number].element, elements[number].path)
      number += 1
      switch element {
      case .field(let field, let types):
        self.printField(field, at: path, scope: scope, types, isOneofMember: false)
      case .oneof(let oneof, let members, let types):
        self.lines.separate()
        self.printOneof(oneof, members, at: path, scope: scope, types)
        self.lines.separate()
      case .message(let message):
        self.lines.separate()
        self.printMessage(message, at: path, scope: scope)
        self.lines.separate()
      case .enumeration(let enumeration):
        self.lines.separate()
        self.printEnum(enumeration, at: path, scope: scope)
        self.lines.separate()
      case .service(let service):
        self.lines.separate()
        self.printService(service, at: path, scope: scope)
        self.lines.separate()
      case .extension(let first, let types):
        var fields = [(first, path)]
        while number < elements.count, case .extension(let field, _) = elements[number].element,
          field.extendee == first.extendee,
          self.statement(ofExtensionAt: elements[number].path) == self.statement(ofExtensionAt: path)
        {
          fields.append((field, elements[number].path))
          number += 1
        }
        self.lines.separate()
        self.printExtensions(fields, at: Array(path.dropLast()), scope: scope, types)
        self.lines.separate()
      }
    }
  }

  /// The location of the `extend` block around an extension.
  private func statement(ofExtensionAt path: [Int32]) -> [Int32]? {
    self.locations.location(at: Array(path.dropLast()), around: path)?.span
  }
}
