public import NIOCore

/// The value of a field in a dynamic message.
public enum FieldValue: Sendable, Hashable {
  /// A `bool`.
  case bool(Bool)
  /// All signed integers.
  case int(Int64)
  /// All unsigned integers.
  case uint(UInt64)
  /// `float` and `double`.
  case double(Double)
  /// A `string`.
  case string(String)
  /// A `bytes`.
  case bytes(ByteBuffer)
  /// An enum value by its number, which need not have a name.
  case enumeration(Int32)
  /// A message.
  case message(DynamicMessage)
  /// The elements of a repeated field, in order.
  case list([FieldValue])
  /// The entries of a map field, in no order.
  case map([FieldValue: FieldValue])
}

extension FieldValue: ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
  ExpressibleByStringLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  public init(booleanLiteral value: Bool) { self = .bool(value) }

  public init(integerLiteral value: Int64) { self = .int(value) }

  public init(floatLiteral value: Double) { self = .double(value) }

  public init(stringLiteral value: String) { self = .string(value) }

  public init(arrayLiteral elements: FieldValue...) { self = .list(elements) }

  public init(dictionaryLiteral elements: (FieldValue, FieldValue)...) {
    self = .map(Dictionary(elements) { _, last in last })
  }
}

extension FieldValue {
  /// The kind's name, for error messages.
  var kindName: String {
    switch self {
    case .bool: "a Boolean"
    case .int, .uint: "an integer"
    case .double: "a floating-point number"
    case .string: "a string"
    case .bytes: "bytes"
    case .enumeration: "an enum value"
    case .message(let message): "a \(message.descriptor.name)"
    case .list: "a list"
    case .map: "a map"
    }
  }
}

/// A key for a field: its name in the proto file, or its number.
public protocol FieldKey: Sendable {
  /// Finds the field in a message type.
  func find(in descriptor: MessageDescriptor) -> FieldReference?
}

/// A field of a dynamic message type.
public struct FieldReference: Sendable {
  let message: MessageSchema
  /// A field of `message`.
  let field: FieldSchema

  fileprivate init(_ field: FieldSchema, of message: MessageSchema) {
    self.message = message
    self.field = field
  }
}

extension String: FieldKey {
  public func find(in descriptor: MessageDescriptor) -> FieldReference? {
    guard let field = descriptor.schema.field(named: self) else { return nil }
    return FieldReference(field, of: descriptor.schema)
  }
}

extension Int: FieldKey {
  public func find(in descriptor: MessageDescriptor) -> FieldReference? {
    guard let number = UInt32(exactly: self), let field = descriptor.schema.field(number: number) else {
      return nil
    }
    return FieldReference(field, of: descriptor.schema)
  }
}
