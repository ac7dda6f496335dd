internal import SwiftProtobuf

extension ProtoPrinter {
  // MARK: Enums

  mutating func printEnum(
    _ enumeration: Google_Protobuf_EnumDescriptorProto,
    at path: [Int32],
    scope: String
  ) {
    self.block(
      "\(enumeration.visibility.keyword)enum \(enumeration.name)",
      at: self.locations.location(at: path)
    ) { printer in
      printer.printOptions(enumeration.options, named: "EnumOptions", at: path + [3], scope: scope)
      for (number, value) in enumeration.value.enumerated() {
        printer.printValue(value, at: path + [2, Int32(number)], scope: scope)
      }
      let ranges = enumeration.reservedRange.map { ProtoText.range(ofValues: $0.start, to: $0.end) }
      printer.printReserved(ranges, at: path + [4])
      printer.printReserved(printer.reservedNames(enumeration.reservedName), at: path + [5])
    }
  }

  mutating func printValue(_ value: Google_Protobuf_EnumValueDescriptorProto, at path: [Int32], scope: String)
  {
    let options = self.statements(value.options, named: "EnumValueOptions", scope: scope)
    self.printStatement("\(value.name) = \(value.number)", options, at: self.locations.location(at: path))
  }

  // MARK: Services

  mutating func printService(
    _ service: Google_Protobuf_ServiceDescriptorProto,
    at path: [Int32],
    scope: String
  ) {
    self.block("service \(service.name)", at: self.locations.location(at: path)) { printer in
      printer.printOptions(service.options, named: "ServiceOptions", at: path + [3], scope: scope)
      let name = scope.isEmpty ? service.name : "\(scope).\(service.name)"
      for (number, method) in service.method.enumerated() {
        printer.printMethod(method, at: path + [2, Int32(number)], scope: name)
      }
    }
  }

  mutating func printMethod(_ method: Google_Protobuf_MethodDescriptorProto, at path: [Int32], scope: String)
  {
    let input = (method.clientStreaming ? "stream " : "") + self.names.name(method.inputType, in: scope)
    let output = (method.serverStreaming ? "stream " : "") + self.names.name(method.outputType, in: scope)
    let head = "rpc \(method.name)(\(input)) returns (\(output))"
    guard method.hasOptions else {
      self.statement("\(head);", at: path)
      return
    }
    self.block(head, at: self.locations.location(at: path)) {
      $0.printOptions(method.options, named: "MethodOptions", at: path + [4], scope: scope)
    }
  }
}
