public import NIOCore

/// A value of a field that is known at run time.
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
  /// For errors.
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

/// What names a field: the proto file's name for it, or its number.
public protocol FieldKey: Sendable {
  /// Finds the field among those of a message.
  func find(in descriptor: MessageDescriptor) -> FieldReference?
}

/// A field of a message that is known at run time.
public struct FieldReference: Sendable {
  let message: MessageSchema
  /// Of `message`.
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
