internal import ConnectProtobufC
internal import Foundation
internal import NIOCore
internal import SwiftProtobuf

/// The fields of a SwiftProtobuf message by their numbers, for comparison with a dynamic message.
struct SwiftFields: Visitor {
  enum Value {
    case plain(FieldValue)
    case message(any SwiftProtobuf.Message)
  }

  /// All values of a repeated field; for a map, the values of its entries.
  private(set) var values: [Int: [Value]] = [:]
  /// The keys of a map's entries.
  private(set) var keys: [Int: [FieldValue]] = [:]

  init() {}

  init(_ message: some SwiftProtobuf.Message) throws {
    try message.traverse(visitor: &self)
  }

  private mutating func add(_ value: FieldValue, _ number: Int) {
    self.values[number, default: []].append(.plain(value))
  }

  mutating func visitSingularFloatField(value: Float, fieldNumber: Int) throws {
    self.add(.double(Double(value)), fieldNumber)
  }

  mutating func visitSingularDoubleField(value: Double, fieldNumber: Int) throws {
    self.add(.double(value), fieldNumber)
  }

  mutating func visitSingularInt64Field(value: Int64, fieldNumber: Int) throws {
    self.add(.int(value), fieldNumber)
  }

  mutating func visitSingularUInt64Field(value: UInt64, fieldNumber: Int) throws {
    self.add(.uint(value), fieldNumber)
  }

  mutating func visitSingularBoolField(value: Bool, fieldNumber: Int) throws {
    self.add(.bool(value), fieldNumber)
  }

  mutating func visitSingularStringField(value: String, fieldNumber: Int) throws {
    self.add(.string(value), fieldNumber)
  }

  mutating func visitSingularBytesField(value: Data, fieldNumber: Int) throws {
    self.add(.bytes(ByteBuffer(bytes: value)), fieldNumber)
  }

  mutating func visitSingularEnumField<E: Enum>(value: E, fieldNumber: Int) throws {
    self.add(.enumeration(Int32(truncatingIfNeeded: value.rawValue)), fieldNumber)
  }

  mutating func visitSingularMessageField<M: SwiftProtobuf.Message>(value: M, fieldNumber: Int) throws {
    self.values[fieldNumber, default: []].append(.message(value))
  }

  private mutating func visitEntry(
    _ number: Int,
    _ body: (inout SwiftFields) throws -> Void
  ) throws {
    var entry = SwiftFields()
    try body(&entry)
    guard case .plain(let key)? = entry.values[1]?.first, let value = entry.values[2]?.first else { return }
    self.keys[number, default: []].append(key)
    self.values[number, default: []].append(value)
  }

  mutating func visitMapField<KeyType, ValueType: MapValueType>(
    fieldType: _ProtobufMap<KeyType, ValueType>.Type,
    value: _ProtobufMap<KeyType, ValueType>.BaseType,
    fieldNumber: Int
  ) throws {
    for (key, value) in value {
      try self.visitEntry(fieldNumber) { entry in
        try KeyType.visitSingular(value: key, fieldNumber: 1, with: &entry)
        try ValueType.visitSingular(value: value, fieldNumber: 2, with: &entry)
      }
    }
  }

  mutating func visitMapField<KeyType, ValueType>(
    fieldType: _ProtobufEnumMap<KeyType, ValueType>.Type,
    value: _ProtobufEnumMap<KeyType, ValueType>.BaseType,
    fieldNumber: Int
  ) throws where ValueType.RawValue == Int {
    for (key, value) in value {
      try self.visitEntry(fieldNumber) { entry in
        try KeyType.visitSingular(value: key, fieldNumber: 1, with: &entry)
        try entry.visitSingularEnumField(value: value, fieldNumber: 2)
      }
    }
  }

  mutating func visitMapField<KeyType, ValueType>(
    fieldType: _ProtobufMessageMap<KeyType, ValueType>.Type,
    value: _ProtobufMessageMap<KeyType, ValueType>.BaseType,
    fieldNumber: Int
  ) throws {
    for (key, value) in value {
      try self.visitEntry(fieldNumber) { entry in
        try KeyType.visitSingular(value: key, fieldNumber: 1, with: &entry)
        try entry.visitSingularMessageField(value: value, fieldNumber: 2)
      }
    }
  }

  mutating func visitUnknown(bytes: Data) throws {}
}
