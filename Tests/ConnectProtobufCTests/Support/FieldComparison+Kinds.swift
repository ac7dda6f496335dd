internal import ConnectProtobufC
internal import Foundation
internal import NIOCore
internal import ProtobufCExamples
internal import ProtobufCStubs
internal import SwiftProtobuf

/// Compares the accessors of structs with SwiftProtobuf's accessors of the same fields.
extension FieldComparison {
  mutating func compare(_ found: CKinds, _ expected: Kinds) {
    self.expect("a_double", found.a_double, expected.aDouble)
    self.expect("a_float", found.a_float, expected.aFloat)
    self.expect("an_int32", found.an_int32, expected.anInt32)
    self.expect("an_int64", found.an_int64, expected.anInt64)
    self.expect("a_uint32", found.a_uint32, expected.aUint32)
    self.expect("a_uint64", found.a_uint64, expected.aUint64)
    self.expect("a_sint32", found.a_sint32, expected.aSint32)
    self.expect("a_sint64", found.a_sint64, expected.aSint64)
    self.expect("a_fixed32", found.a_fixed32, expected.aFixed32)
    self.expect("a_fixed64", found.a_fixed64, expected.aFixed64)
    self.expect("an_sfixed32", found.an_sfixed32, expected.anSfixed32)
    self.expect("an_sfixed64", found.an_sfixed64, expected.anSfixed64)
    self.expect("a_bool", found.a_bool != 0, expected.aBool)
    self.expect("a_string", found.a_string, expected.aString)
    self.expect("some_bytes", found.some_bytes, ByteBuffer(bytes: expected.someBytes))
    self.expect("a_shade", Int(found.a_shade.rawValue), expected.aShade.rawValue)
    self.expect("plain_name", found.plain_name, expected.plainName)
    self.expect("_odd__name_3", found._odd__name_3, expected.odd_Name3)
    self.expect("far_away", found.far_away, expected.farAway)
    self.inside("nested", found.nested, expected.hasNested ? expected.nested : nil) { $0.compare($1, $2) }
    self.inside("repeated", found.repeated, expected.hasRepeated ? expected.repeated : nil) {
      $0.compare($1, $2)
    }
    self.inside("maps", found.maps, expected.hasMaps ? expected.maps : nil) { $0.compare($1, $2) }
    self.inside("optionals", found.optionals, expected.hasOptionals ? expected.optionals : nil) {
      $0.compare($1, $2)
    }
    self.inside("well_known", found.well_known, expected.hasWellKnown ? expected.wellKnown : nil) {
      $0.compare($1, $2)
    }
    self.compareChoice(found, expected.choice)
  }

  private mutating func compareChoice(_ found: CKinds, _ expected: Kinds.OneOf_Choice?) {
    func expectCase(_ number: UInt32) {
      self.expect("choice", UInt32(truncatingIfNeeded: found.choice_case.rawValue), number)
    }
    switch expected {
    case .oneDouble(let value):
      expectCase(31)
      self.expect("one_double", found.one_double, value)
    case .oneInt32(let value):
      expectCase(32)
      self.expect("one_int32", found.one_int32, value)
    case .oneUint64(let value):
      expectCase(33)
      self.expect("one_uint64", found.one_uint64, value)
    case .oneBool(let value):
      expectCase(34)
      self.expect("one_bool", found.one_bool != 0, value)
    case .oneString(let value):
      expectCase(35)
      self.expect("one_string", found.one_string, value)
    case .oneBytes(let value):
      expectCase(36)
      self.expect("one_bytes", found.one_bytes, ByteBuffer(bytes: value))
    case .oneShade(let value):
      expectCase(37)
      self.expect("one_shade", Int(found.one_shade.rawValue), value.rawValue)
    case .oneNested(let value):
      expectCase(38)
      self.inside("one_nested", found.one_nested, value) { $0.compare($1, $2) }
    case .anotherString(let value):
      expectCase(39)
      self.expect("another_string", found.another_string, value)
    case nil:
      expectCase(0)
    }
  }

  private mutating func compare(
    _ found: CMessage<Connect__Kinds__V1__Repeated>,
    _ expected: Connect_Kinds_V1_Repeated
  ) {
    self.expect("doubles", found.list(\.doubles, count: \.n_doubles), expected.doubles)
    self.expect("floats", found.list(\.floats, count: \.n_floats), expected.floats)
    self.expect("int32s", found.list(\.int32s, count: \.n_int32s), expected.int32S)
    self.expect("int64s", found.list(\.int64s, count: \.n_int64s), expected.int64S)
    self.expect("uint32s", found.list(\.uint32s, count: \.n_uint32s), expected.uint32S)
    self.expect("uint64s", found.list(\.uint64s, count: \.n_uint64s), expected.uint64S)
    self.expect("sint32s", found.list(\.sint32s, count: \.n_sint32s), expected.sint32S)
    self.expect("sint64s", found.list(\.sint64s, count: \.n_sint64s), expected.sint64S)
    self.expect("fixed32s", found.list(\.fixed32s, count: \.n_fixed32s), expected.fixed32S)
    self.expect("fixed64s", found.list(\.fixed64s, count: \.n_fixed64s), expected.fixed64S)
    self.expect("sfixed32s", found.list(\.sfixed32s, count: \.n_sfixed32s), expected.sfixed32S)
    self.expect("sfixed64s", found.list(\.sfixed64s, count: \.n_sfixed64s), expected.sfixed64S)
    self.expect("bools", found.list(\.bools, count: \.n_bools).map { $0 != 0 }, expected.bools)
    self.expect("strings", found.list(\.strings, count: \.n_strings), expected.strings)
    self.expect(
      "some_bytes",
      found.list(\.some_bytes, count: \.n_some_bytes),
      expected.someBytes.map { ByteBuffer(bytes: $0) }
    )
    self.expect(
      "shades",
      found.list(\.shades, count: \.n_shades).map { Int($0.rawValue) },
      expected.shades.map(\.rawValue)
    )
    self.expect("unpacked", found.list(\.unpacked, count: \.n_unpacked), expected.unpacked)
    self.list("nested", found.list(\.nested, count: \.n_nested), expected.nested) { $0.compare($1, $2) }
  }

  private mutating func list<Found, Expected>(
    _ name: String,
    _ found: [Found],
    _ expected: [Expected],
    _ body: (inout FieldComparison, Found, Expected) -> Void
  ) {
    self.expect("count of \(name)", found.count, expected.count)
    for (index, (found, expected)) in zip(found, expected).enumerated() {
      self.inside("\(name)[\(index)]", found, expected, body)
    }
  }

  private mutating func map<Key: Hashable, Found, Expected>(
    _ name: String,
    _ found: [(Key, Found)],
    _ expected: [Key: Expected],
    _ body: (inout FieldComparison, Found, Expected) -> Void
  ) {
    self.expect("count of \(name)", found.count, expected.count)
    for (key, found) in found { self.inside("\(name)[\(key)]", found, expected[key], body) }
  }

  private mutating func map<Key: Hashable, Value: Equatable>(
    _ name: String,
    _ found: [(Key, Value)],
    _ expected: [Key: Value]
  ) {
    self.map(name, found, expected) { $0.expect("value", $1, $2) }
  }

  private mutating func compare(
    _ found: CMessage<Connect__Kinds__V1__Maps>,
    _ expected: Connect_Kinds_V1_Maps
  ) {
    let strings = found.list(\.strings, count: \.n_strings)
    self.map("strings", strings.map { ($0.key, $0.value) }, expected.strings)
    let doubles = found.list(\.doubles, count: \.n_doubles)
    self.map("doubles", doubles.map { ($0.key, $0.value) }, expected.doubles)
    let someBytes = found.list(\.some_bytes, count: \.n_some_bytes)
    self.map(
      "some_bytes",
      someBytes.map { ($0.key, $0.value) },
      expected.someBytes.mapValues { ByteBuffer(bytes: $0) }
    )
    let bools = found.list(\.bools, count: \.n_bools)
    self.map("bools", bools.map { ($0.key, $0.value != 0) }, expected.bools)
    let shades = found.list(\.shades, count: \.n_shades)
    self.map(
      "shades",
      shades.map { ($0.key, Int($0.value.rawValue)) },
      expected.shades.mapValues(\.rawValue)
    )
    let nested = found.list(\.nested, count: \.n_nested)
    self.map("nested", nested.map { ($0.key, $0.value) }, expected.nested) { comparison, found, expected in
      comparison.inside("value", found, expected) { $0.compare($1, $2) }
    }
    let floats = found.list(\.floats, count: \.n_floats)
    self.map("floats", floats.map { ($0.key, $0.value) }, expected.floats)
    let int64s = found.list(\.int64s, count: \.n_int64s)
    self.map("int64s", int64s.map { ($0.key, $0.value) }, expected.int64S)
    let uint64s = found.list(\.uint64s, count: \.n_uint64s)
    self.map("uint64s", uint64s.map { ($0.key, $0.value) }, expected.uint64S)
    let sint32s = found.list(\.sint32s, count: \.n_sint32s)
    self.map("sint32s", sint32s.map { ($0.key, $0.value) }, expected.sint32S)
    let uint32s = found.list(\.uint32s, count: \.n_uint32s)
    self.map("uint32s", uint32s.map { ($0.key, $0.value) }, expected.uint32S)
    let int32s = found.list(\.int32s, count: \.n_int32s)
    self.map("int32s", int32s.map { ($0.key != 0, $0.value) }, expected.int32S)
  }

  /// In C, each is the only member of a oneof, whose case says whether it is set.
  private mutating func compare(
    _ found: CMessage<Connect__Kinds__V1__Optionals>,
    _ expected: Connect_Kinds_V1_Optionals
  ) {
    self.inside(
      "a_double",
      found._a_double_case.rawValue == 0 ? nil : found.a_double,
      expected.hasADouble ? expected.aDouble : nil
    ) { $0.expect("value", $1, $2) }
    self.inside(
      "a_float",
      found._a_float_case.rawValue == 0 ? nil : found.a_float,
      expected.hasAFloat ? expected.aFloat : nil
    ) { $0.expect("value", $1, $2) }
    self.inside(
      "an_int32",
      found._an_int32_case.rawValue == 0 ? nil : found.an_int32,
      expected.hasAnInt32 ? expected.anInt32 : nil
    ) { $0.expect("value", $1, $2) }
    self.inside(
      "a_uint64",
      found._a_uint64_case.rawValue == 0 ? nil : found.a_uint64,
      expected.hasAUint64 ? expected.aUint64 : nil
    ) { $0.expect("value", $1, $2) }
    self.inside(
      "a_bool",
      found._a_bool_case.rawValue == 0 ? nil : found.a_bool != 0,
      expected.hasABool ? expected.aBool : nil
    ) { $0.expect("value", $1, $2) }
    self.inside(
      "a_string",
      found._a_string_case.rawValue == 0 ? nil : found.a_string,
      expected.hasAString ? expected.aString : nil
    ) { $0.expect("value", $1, $2) }
    self.inside(
      "some_bytes",
      found._some_bytes_case.rawValue == 0 ? nil : found.some_bytes,
      expected.hasSomeBytes ? ByteBuffer(bytes: expected.someBytes) : nil
    ) { $0.expect("value", $1, $2) }
    self.inside(
      "a_shade",
      found._a_shade_case.rawValue == 0 ? nil : Int(found.a_shade.rawValue),
      expected.hasAShade ? expected.aShade.rawValue : nil
    ) { $0.expect("value", $1, $2) }
    self.inside("nested", found.nested, expected.hasNested ? expected.nested : nil) { $0.compare($1, $2) }
  }

  /// Messages with fields of several kinds; the others are compared as dynamic messages.
  private mutating func compare(
    _ found: CMessage<Connect__Kinds__V1__WellKnown>,
    _ expected: Connect_Kinds_V1_WellKnown
  ) {
    self.inside("timestamp", found.timestamp, expected.hasTimestamp ? expected.timestamp : nil) {
      $0.expect("seconds", $1.seconds, $2.seconds)
      $0.expect("nanos", $1.nanos, $2.nanos)
    }
    self.inside("duration", found.duration, expected.hasDuration ? expected.duration : nil) {
      $0.expect("seconds", $1.seconds, $2.seconds)
      $0.expect("nanos", $1.nanos, $2.nanos)
    }
    self.inside("mask", found.mask, expected.hasMask ? expected.mask : nil) {
      $0.expect("paths", $1.list(\.paths, count: \.n_paths), $2.paths)
    }
    // For a `Value`, a plain nil would mean JSON null.
    self.inside("value", found.value, expected.hasValue ? .some(expected.value) : .none) {
      $0.compare($1, $2)
    }
    self.list("values", found.list(\.values, count: \.n_values), expected.values) { $0.compare($1, $2) }
    self.inside("empty", found.empty, expected.hasEmpty ? expected.empty : nil) { _, _, _ in }
    self.inside("a_string", found.a_string, expected.hasAString ? expected.aString : nil) {
      $0.expect("value", $1.value, $2.value)
    }
  }

  private mutating func compare(
    _ found: CMessage<Google__Protobuf__Value>,
    _ expected: Google_Protobuf_Value
  ) {
    let number = UInt32(truncatingIfNeeded: found.kind_case.rawValue)
    switch expected.kind {
    case .nullValue: self.expect("kind", number, 1)
    case .numberValue(let value):
      self.expect("kind", number, 2)
      self.expect("number_value", found.number_value, value)
    case .stringValue(let value):
      self.expect("kind", number, 3)
      self.expect("string_value", found.string_value, value)
    case .boolValue(let value):
      self.expect("kind", number, 4)
      self.expect("bool_value", found.bool_value != 0, value)
    case .structValue(let value):
      self.expect("kind", number, 5)
      let fields = found.struct_value?.list(\.fields, count: \.n_fields) ?? []
      self.map("fields", fields.map { ($0.key, $0.value) }, value.fields) { comparison, found, expected in
        comparison.inside("value", found, expected) { $0.compare($1, $2) }
      }
    case .listValue(let value):
      self.expect("kind", number, 6)
      let values = found.list_value?.list(\.values, count: \.n_values) ?? []
      self.list("values", values, value.values) { $0.compare($1, $2) }
    case nil: self.expect("kind", number, 0)
    }
  }
}
