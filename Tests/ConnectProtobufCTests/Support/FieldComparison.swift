internal import NIOCore
internal import SwiftProtobuf

@testable import ConnectProtobufC

/// Collects the fields in which two messages differ.
struct FieldComparison {
  private(set) var differences: [String] = []
  private var path: [String] = []

  mutating func expect<Value: Equatable>(_ name: String, _ found: Value, _ expected: Value) {
    if found != expected { self.differences.append("\(self.name(name)): \(found), not \(expected)") }
  }

  private func name(_ field: String) -> String { (self.path + [field]).joined(separator: ".") }

  /// Compares the content of a field; records a difference if only one of the messages has the field.
  mutating func inside<Found, Expected>(
    _ name: String,
    _ found: Found?,
    _ expected: Expected?,
    _ body: (inout FieldComparison, Found, Expected) throws -> Void
  ) rethrows {
    guard let found, let expected else {
      self.expect("has(\(name))", found != nil, expected != nil)
      return
    }
    self.path.append(name)
    defer { self.path.removeLast() }
    try body(&self, found, expected)
  }

  // MARK: Messages known at run time

  /// Compares each field of the type, including unset fields.
  mutating func compare(_ found: DynamicMessage, _ expected: some SwiftProtobuf.Message) throws {
    let fields = try SwiftFields(expected)
    var count = 0
    for field in found.descriptor.schema.fields {
      let name = field.name
      let number = Int(field.number)
      let values = fields.values[number] ?? []
      if !values.isEmpty { count += 1 }
      self.expect("has(\(name))", try found.has(number), !values.isEmpty)
      try self.compare(name, try found.value(of: name), values, keys: fields.keys[number])
    }
    self.expect("fields of \(found.descriptor.name)", count, fields.values.count)
  }

  private mutating func compare(
    _ name: String,
    _ found: FieldValue,
    _ expected: [SwiftFields.Value],
    keys: [FieldValue]?
  ) throws {
    switch found {
    case .list(let values):
      self.expect("count of \(name)", values.count, expected.count)
      for (index, (value, expected)) in zip(values, expected).enumerated() {
        try self.compareOne("\(name)[\(index)]", value, expected)
      }
    case .map(let pairs):
      self.expect("count of \(name)", pairs.count, expected.count)
      for (key, expected) in zip(keys ?? [], expected) {
        guard let value = pairs[key] else {
          self.expect("has(\(name)[\(key)])", false, true)
          continue
        }
        try self.compareOne("\(name)[\(key)]", value, expected)
      }
    default:
      // An unset field has its default, which is zero in proto3.
      if let expected = expected.first { try self.compareOne(name, found, expected) }
    }
  }

  private mutating func compareOne(
    _ name: String,
    _ found: FieldValue,
    _ expected: SwiftFields.Value
  ) throws {
    switch (found, expected) {
    case (.message(let found), .message(let expected)):
      try self.inside(name, found, expected) { try $0.compare($1, $2) }
    case (_, .plain(let expected)): self.expect(name, found, expected)
    case (_, .message): self.expect(name, "\(found)", "a message")
    }
  }
}
