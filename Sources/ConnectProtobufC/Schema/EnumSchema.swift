internal import CProtobufC

/// The values of an enum.
final class EnumSchema: Sendable {
  let name: String
  /// The number of each name, including aliases.
  let numbers: [String: Int32]
  /// The first name of each number.
  let names: [Int32: String]
  /// The value of an absent field.
  let firstNumber: Int32

  /// `values` in the order of the proto file.
  init(name: String, values: [(name: String, number: Int32)]) {
    self.name = name
    self.firstNumber = values.first?.number ?? 0
    self.numbers = Dictionary(values.map { ($0.name, $0.number) }) { first, _ in first }
    self.names = Dictionary(values.map { ($0.number, $0.name) }) { first, _ in first }
  }

  convenience init(_ descriptor: ProtobufCEnumDescriptor) {
    let values = (0..<Int(descriptor.n_value_names)).map { index in
      let value = descriptor.values_by_name[index]
      return (name: String(cString: value.name), number: descriptor.values[Int(value.index)].value)
    }
    // The names in `values` come first: one for each number.
    let primary = (0..<Int(descriptor.n_values)).map { index in
      (name: String(cString: descriptor.values[index].name), number: descriptor.values[index].value)
    }
    self.init(name: String(cString: descriptor.name), values: primary + values)
  }

  var isNullValue: Bool { self.name == "google.protobuf.NullValue" }
}
