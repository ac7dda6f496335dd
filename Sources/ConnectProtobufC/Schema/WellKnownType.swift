/// Messages with a special JSON form.
enum WellKnownType: String {
  case any = "google.protobuf.Any"
  case timestamp = "google.protobuf.Timestamp"
  case duration = "google.protobuf.Duration"
  case fieldMask = "google.protobuf.FieldMask"
  case structure = "google.protobuf.Struct"
  case value = "google.protobuf.Value"
  case listValue = "google.protobuf.ListValue"
  case doubleValue = "google.protobuf.DoubleValue"
  case floatValue = "google.protobuf.FloatValue"
  case int64Value = "google.protobuf.Int64Value"
  case uint64Value = "google.protobuf.UInt64Value"
  case int32Value = "google.protobuf.Int32Value"
  case uint32Value = "google.protobuf.UInt32Value"
  case boolValue = "google.protobuf.BoolValue"
  case stringValue = "google.protobuf.StringValue"
  case bytesValue = "google.protobuf.BytesValue"

  /// Whether these are the type's fields, as far as its JSON form relies on them.
  func fits(_ fields: FieldList) -> Bool {
    let expected: [(UInt32, FieldKind, isRepeated: Bool)] =
      switch self {
      case .any: [(1, .string, false), (2, .bytes, false)]
      case .timestamp, .duration: [(1, .int64, false), (2, .int32, false)]
      case .fieldMask: [(1, .string, true)]
      case .structure, .listValue: [(1, .message, true)]
      case .value:
        [
          (1, .enumeration, false), (2, .double, false), (3, .string, false), (4, .bool, false),
          (5, .message, false),
          (6, .message, false),
        ]
      case .doubleValue: [(1, .double, false)]
      case .floatValue: [(1, .float, false)]
      case .int64Value: [(1, .int64, false)]
      case .uint64Value: [(1, .uint64, false)]
      case .int32Value: [(1, .int32, false)]
      case .uint32Value: [(1, .uint32, false)]
      case .boolValue: [(1, .bool, false)]
      case .stringValue: [(1, .string, false)]
      case .bytesValue: [(1, .bytes, false)]
      }
    guard fields.count == expected.count else { return false }
    return zip(fields, expected).allSatisfy { field, expected in
      field.number == expected.0 && field.kind == expected.1
        && field.isRepeated == expected.isRepeated && field.isOneofMember == (self == .value)
    }
  }
}
