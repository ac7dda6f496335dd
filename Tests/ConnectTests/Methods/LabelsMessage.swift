import SwiftProtobuf

/// A message with a map, as protoc-gen-swift would make it: `message Labels { map<string, string> labels = 1; }`.
struct LabelsMessage: SwiftProtobuf.Message, _MessageImplementationBase, _ProtoNameProviding, Hashable {
  static let protoMessageName = "connect.test.Labels"
  // swift-format-ignore: AlwaysUseLowerCamelCase
  static let _protobuf_nameMap = _NameMap(bytecode: "\0\u{1}labels\0")

  var labels: [String: String] = [:]
  var unknownFields = UnknownStorage()

  mutating func decodeMessage(decoder: inout some SwiftProtobuf.Decoder) throws {
    while let number = try decoder.nextFieldNumber() {
      guard number == 1 else { continue }
      try decoder.decodeMapField(
        fieldType: _ProtobufMap<ProtobufString, ProtobufString>.self,
        value: &self.labels
      )
    }
  }

  func traverse(visitor: inout some SwiftProtobuf.Visitor) throws {
    if !self.labels.isEmpty {
      try visitor.visitMapField(
        fieldType: _ProtobufMap<ProtobufString, ProtobufString>.self,
        value: self.labels,
        fieldNumber: 1
      )
    }
    try self.unknownFields.traverse(visitor: &visitor)
  }
}
