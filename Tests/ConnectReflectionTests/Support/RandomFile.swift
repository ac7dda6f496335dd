internal import SwiftProtobuf

@testable import ConnectReflection

/// Makes proto files with random declarations whose names hide each other.
struct RandomFile<Generator: RandomNumberGenerator> {
  private static var package: String { "acme.v1" }

  private var generator: Generator
  private let isProto3: Bool
  private var valueCount = 0
  /// The full names of existing declarations, with leading dots.
  private var messages: [String] = []
  private var enums: [String] = []

  init(_ generator: Generator, isProto3: Bool) {
    self.generator = generator
    self.isProto3 = isProto3
  }

  mutating func make() -> File {
    var file = File()
    file.name = "random.proto"
    file.package = Self.package
    if self.isProto3 { file.syntax = "proto3" }
    var names: Set<String> = []
    for _ in 0..<3 { file.enumType.append(self.makeEnum(in: Self.package, &names)) }
    for _ in 0..<4 { file.messageType.append(self.makeMessage(in: Self.package, &names, depth: 0)) }
    file.messageType = file.messageType.map { self.withFields($0, named: "\(Self.package).\($0.name)") }
    for _ in 0..<2 {
      var methods: Set<String> = []
      var service = Google_Protobuf_ServiceDescriptorProto()
      service.name = self.name(&names)
      for _ in 0..<3 {
        service.method.append(
          .with {
            $0.name = self.name(&methods)
            $0.inputType = self.messages.randomElement(using: &self.generator) ?? ""
            $0.outputType = self.messages.randomElement(using: &self.generator) ?? ""
            if self.flip() { $0.clientStreaming = true }
            if self.flip() { $0.serverStreaming = true }
          }
        )
      }
      file.service.append(service)
    }
    return file
  }

  private mutating func flip() -> Bool { Bool.random(using: &self.generator) }

  /// A name that is not taken.
  private mutating func name(_ taken: inout Set<String>) -> String {
    let name = ["acme", "v1", "A", "B", "C", "Dd"].randomElement(using: &self.generator) ?? "A"
    var free = name
    while !taken.insert(free).inserted { free = "\(name)\(taken.count)" }
    return free
  }

  private mutating func makeEnum(
    in scope: String,
    _ names: inout Set<String>
  ) -> Google_Protobuf_EnumDescriptorProto {
    let name = self.name(&names)
    self.enums.append(".\(scope).\(name)")
    return .with { proto in
      proto.name = name
      for number in [0, 1, -1, Int32.max, Int32.min] {
        self.valueCount += 1
        proto.value.append(
          .with {
            $0.name = "VALUE_\(self.valueCount)"
            $0.number = number
          }
        )
      }
      if self.flip() {
        proto.reservedRange = [
          .with {
            $0.start = 100
            $0.end = 200
          }
        ]
        proto.reservedName = ["OLD"]
      }
    }
  }

  /// Makes a message without fields, which need the names of all messages.
  private mutating func makeMessage(
    in scope: String,
    _ names: inout Set<String>,
    depth: Int
  ) -> Google_Protobuf_DescriptorProto {
    var message = Google_Protobuf_DescriptorProto()
    message.name = self.name(&names)
    let name = "\(scope).\(message.name)"
    self.messages.append(".\(name)")
    var inner: Set<String> = []
    if depth < 3 {
      for _ in 0..<Int.random(in: 0...2, using: &self.generator) {
        message.nestedType.append(self.makeMessage(in: name, &inner, depth: depth + 1))
      }
    }
    if self.flip() { message.enumType.append(self.makeEnum(in: name, &inner)) }
    return message
  }

  private mutating func withFields(
    _ message: Google_Protobuf_DescriptorProto,
    named name: String
  ) -> Google_Protobuf_DescriptorProto {
    var message = message
    message.nestedType = message.nestedType.map { self.withFields($0, named: "\(name).\($0.name)") }
    var names = Set(message.nestedType.map(\.name) + message.enumType.map(\.name))
    // Two fields with the same JSON name are an error.
    names.formUnion(names.map { $0.lowercased() })
    var number: Int32 = 0
    for _ in 0..<8 {
      number += Int32.random(in: 1...3, using: &self.generator)
      var field = self.makeField(number, &names)
      if field.label == .repeated, self.flip() {
        let json = ProtoText.jsonName(of: field.name)
        let entry = "\(json.prefix(1).uppercased())\(json.dropFirst())Entry"
        var value = field
        value.name = "value"
        value.number = 2
        value.jsonName = "value"
        value.label = .optional
        value.clearOptions()
        message.nestedType.append(
          .with {
            $0.name = entry
            $0.options.mapEntry = true
            $0.field = [
              .with {
                $0.name = "key"
                $0.number = 1
                $0.label = .optional
                $0.type = .string
                $0.jsonName = "key"
              }, value,
            ]
          }
        )
        field.type = .message
        field.typeName = ".\(name).\(entry)"
        field.clearOptions()
      }
      message.field.append(field)
    }
    if self.flip() {
      let oneof = self.name(&names)
      message.oneofDecl = [.with { $0.name = oneof }]
      for _ in 0..<2 {
        number += 1
        var field = self.makeField(number, &names)
        field.label = .optional
        field.clearOptions()
        field.oneofIndex = 0
        message.field.append(field)
      }
    }
    message.reservedRange = [
      .with {
        $0.start = 100
        $0.end = self.flip() ? 101 : 536_870_912
      }
    ]
    return message
  }

  private mutating func makeField(
    _ number: Int32,
    _ names: inout Set<String>
  ) -> Google_Protobuf_FieldDescriptorProto {
    let name = self.name(&names).lowercased()
    names.insert(name)
    var field = Google_Protobuf_FieldDescriptorProto()
    field.name = "\(name)_\(number)"
    field.number = number
    field.jsonName = self.flip() ? "json\(number)" : ProtoText.jsonName(of: field.name)
    field.label = self.flip() ? .repeated : .optional
    let types: [Google_Protobuf_FieldDescriptorProto.TypeEnum] = [
      .double, .sint64, .bool, .string, .bytes, .fixed32, .message, .message, .enum,
    ]
    field.type = types.randomElement(using: &self.generator) ?? .bool
    if field.type == .message { field.typeName = self.messages.randomElement(using: &self.generator) ?? "" }
    if field.type == .enum { field.typeName = self.enums.randomElement(using: &self.generator) ?? "" }
    let isPackable = ![.string, .bytes, .message].contains(field.type)
    if field.label == .repeated, isPackable, self.flip() { field.options.packed = self.flip() }
    if !self.isProto3, field.label == .optional, field.type == .string, self.flip() {
      field.defaultValue = "\"\n\\ ü"
    }
    return field
  }
}
