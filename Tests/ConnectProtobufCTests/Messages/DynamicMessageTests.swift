internal import Connect
internal import ConnectProtobufC
internal import NIOCore
internal import SwiftProtobuf
import XCTest

/// Messages whose type is known at run time only.
final class DynamicMessageTests: XCTestCase {
  private func make(_ name: String = "Kinds") throws -> DynamicMessage {
    DynamicMessage(try kindsDescriptor(name))
  }

  func testEveryKind() throws {
    var message = try self.make()
    let values: [(String, FieldValue)] = [
      ("a_double", 1.5), ("a_float", -0.25), ("an_int32", -3), ("an_int64", .int(.min)),
      ("a_uint32", .uint(7)),
      ("a_uint64", .uint(.max)), ("a_sint32", -5), ("a_sint64", .int(.max)), ("a_fixed32", .uint(1)),
      ("a_fixed64", .uint(2)), ("an_sfixed32", -1), ("an_sfixed64", -2), ("a_bool", true),
      ("a_string", "ä\0b"),
      ("some_bytes", .bytes(ByteBuffer(bytes: [0, 255]))), ("a_shade", .enumeration(-3)), ("far_away", 9),
    ]
    for (name, value) in values {
      XCTAssertFalse(try message.has(name), name)
      try message.set(name, to: value)
      XCTAssertTrue(try message.has(name), name)
      XCTAssertEqual(try message.value(of: name), value)
    }
    XCTAssertEqual(try message.enumName(of: "a_shade"), "SHADE_NEGATIVE")
    XCTAssertEqual(
      try Kinds(message.serializedBytes()),
      .with {
        $0.aDouble = 1.5
        $0.aFloat = -0.25
        $0.anInt32 = -3
        $0.anInt64 = .min
        $0.aUint32 = 7
        $0.aUint64 = .max
        $0.aSint32 = -5
        $0.aSint64 = .max
        $0.aFixed32 = 1
        $0.aFixed64 = 2
        $0.anSfixed32 = -1
        $0.anSfixed64 = -2
        $0.aBool = true
        $0.aString = "ä\0b"
        $0.someBytes = .init([0, 255])
        $0.aShade = .negative
        $0.farAway = 9
      }
    )
    for (name, _) in values { try message.clear(name) }
    XCTAssertEqual(message, try self.make())
  }

  func testValuesThatDoNotFit() throws {
    var message = try self.make()
    let wrong: [(String, FieldValue)] = [
      ("an_int32", .int(1 << 31)), ("an_int32", .uint(1 << 31)), ("an_int32", 1.5), ("an_int32", true),
      ("an_int64", .uint(1 << 63)), ("a_uint32", -1), ("a_uint64", -1), ("a_uint32", .uint(1 << 32)),
      ("a_double", "1"), ("a_bool", 1), ("a_string", .bytes(ByteBuffer())), ("some_bytes", "x"),
      ("a_string", ["x"]),
      ("a_float", 1e300), ("a_float", -3.5e38), ("a_float", .int(1 << 24 + 1)),
      ("a_double", .int(1 << 53 + 1)), ("a_double", .int(.max)),
      ("a_shade", "SHADE_PINK"), ("a_shade", 1.5), ("nested", "x"),
      ("nested", .message(try self.make("Maps"))),
      ("one_string", 5),
    ]
    for (name, value) in wrong {
      expectError(.invalidArgument, "connect.kinds.v1.Kinds.\(name) does not take") {
        try message.set(name, to: value)
      }
    }
    XCTAssertEqual(message, try self.make())
    var list = try self.make("Repeated")
    expectError(.invalidArgument, "strings does not take an integer: ") {
      try list.set("strings", to: ["a", 1])
    }
    expectError(.invalidArgument, "strings does not take a string: ") { try list.set("strings", to: "a") }
    var maps = try self.make("Maps")
    expectError(.invalidArgument, "StringsEntry.key does not take") { try maps.set("strings", to: [1: "a"]) }
    expectError(.invalidArgument, "StringsEntry.value does not take") {
      try maps.set("strings", to: ["a": 1])
    }
    expectError(.invalidArgument, "strings does not take a list") { try maps.set("strings", to: ["a"]) }
    expectError(.invalidArgument, "no field missing") { try message.value(of: "missing") }
    expectError(.invalidArgument, "no field 1000") { try message.clear(1000) }
    expectError(.invalidArgument, "no field -1") { try message.has(-1) }
    expectError(.invalidArgument, "a_string is no enum") { try message.enumName(of: "a_string") }
    expectError(.invalidArgument, "a_string is no message") { try message.update("a_string") { _ in } }
  }

  func testNumbersOfFloatingPoint() throws {
    var message = try self.make()
    let values: [(FieldValue, Double)] = [
      (0.1, Double(Float(0.1))), (.double(.infinity), .infinity), (.double(-.infinity), -.infinity),
      (.int(1 << 24), 0x1p24), (.int(.min), -0x1p63), (1e-300, 0),
      (.double(Double(Float.greatestFiniteMagnitude)), Double(Float.greatestFiniteMagnitude)),
    ]
    for (value, expected) in values {
      try message.set("a_float", to: value)
      XCTAssertEqual(try message.value(of: "a_float"), .double(expected))
    }
    try message.set("a_float", to: .double(.nan))
    guard case .double(let number) = try message.value(of: "a_float") else { return XCTFail("no number") }
    XCTAssertTrue(number.isNaN)
    try message.set("a_double", to: .int(1 << 53))
    XCTAssertEqual(try message.value(of: "a_double"), .double(0x1p53))
  }

  func testRepeatedFieldsAndMaps() throws {
    var list = try self.make("Repeated")
    try list.set("int64s", to: [1, -2])
    try list.set("strings", to: ["a", ""])
    try list.set("shades", to: ["SHADE_GLOOMY", .enumeration(5)])
    try list.set("nested", to: [.message(try self.make())])
    XCTAssertEqual(try list.value(of: "int64s"), [1, -2])
    XCTAssertEqual(try list.value(of: "strings"), ["a", ""])
    XCTAssertEqual(try list.value(of: "shades"), .list([.enumeration(2), .enumeration(5)]))
    XCTAssertEqual(try list.value(of: "doubles"), [])
    try list.set("int64s", to: [])
    XCTAssertFalse(try list.has("int64s"))

    var maps = try self.make("Maps")
    try maps.set("strings", to: ["k": "v", "": ""])
    try maps.set("nested", to: [-1: .message(try self.make())])
    try maps.set("int32s", to: [true: 1, false: 0])
    XCTAssertEqual(try maps.value(of: "strings"), ["k": "v", "": ""])
    XCTAssertEqual(try maps.value(of: "int32s"), [true: 1, false: 0])
    XCTAssertEqual(try maps.value(of: "nested"), [-1: .message(try self.make())])
    let decoded = try Connect_Kinds_V1_Maps(maps.serializedBytes())
    XCTAssertEqual(decoded.strings, ["k": "v", "": ""])
    XCTAssertEqual(decoded.nested, [-1: Kinds()])
  }

  func testPresence() throws {
    var message = try self.make("Optionals")
    for name in message.descriptor.fieldNames {
      XCTAssertFalse(try message.has(name), name)
      try message.set(name, to: try message.value(of: name))
      XCTAssertTrue(try message.has(name), name)
    }
    let decoded = try Connect_Kinds_V1_Optionals(message.serializedBytes())
    XCTAssertTrue(decoded.hasADouble && decoded.hasAString && decoded.hasSomeBytes && decoded.hasNested)
    XCTAssertEqual(try DynamicMessage(kindsDescriptor("Optionals"), serializedBytes: decoded.buffer), message)
    try message.clear("a_string")
    XCTAssertFalse(try Connect_Kinds_V1_Optionals(message.serializedBytes()).hasAString)
  }

  func testOneof() throws {
    var message = try self.make()
    let members: [(String, FieldValue)] = [
      ("one_double", 0.0), ("one_int32", 0), ("one_uint64", .uint(.max)), ("one_bool", false),
      ("one_string", ""),
      ("one_bytes", .bytes(ByteBuffer())), ("one_shade", .enumeration(0)),
      ("one_nested", .message(try self.make())),
      ("another_string", "x"),
    ]
    for (name, value) in members {
      try message.set(name, to: value)
      for (other, _) in members { XCTAssertEqual(try message.has(other), name == other, "\(name), \(other)") }
      XCTAssertEqual(try message.value(of: name), value)
      XCTAssertEqual(
        try DynamicMessage(kindsDescriptor(), serializedBytes: message.serializedBytes()),
        message
      )
    }
    try message.clear("one_string")
    XCTAssertTrue(try message.has("another_string"), "another member is cleared")
    try message.clear("another_string")
    XCTAssertEqual(message, try self.make())
  }

  func testNestedMessagesAndValueSemantics() throws {
    var message = try self.make()
    try message.update("nested") { inner in
      try inner.set("a_string", to: "inner")
      try inner.update("nested") { try $0.set("an_int32", to: 2) }
    }
    let copy = message
    try message.update("nested") { try $0.set("a_string", to: "changed") }
    guard case .message(let inner) = try copy.value(of: "nested") else { return XCTFail("no message") }
    XCTAssertEqual(try inner.value(of: "a_string"), "inner")
    XCTAssertEqual(
      try Kinds(message.serializedBytes()).nested,
      .with {
        $0.aString = "changed"
        $0.nested.anInt32 = 2
      }
    )
    // A message put into itself is a copy.
    try message.set("one_nested", to: .message(message))
    XCTAssertEqual(try Kinds(message.serializedBytes()).oneNested.nested.aString, "changed")
    expectError(.aborted, "") {
      try message.update("nested") { _ in throw ConnectError(code: .aborted, message: "") }
    }
  }

  func testBytesInPlace() throws {
    var message = try self.make()
    try message.set("a_string", to: "ä\0b")
    try message.set("some_bytes", to: .bytes(ByteBuffer(bytes: [1, 2, 3])))
    try message.set("one_string", to: "x")
    let bytes = { (key: String) in
      try message.withBytes(of: key) { span in
        span.byteOffsets.map { span.unsafeLoad(fromByteOffset: $0, as: UInt8.self) }
      }
    }
    XCTAssertEqual(try bytes("a_string"), Array("ä\0b".utf8))
    XCTAssertEqual(try bytes("some_bytes"), [1, 2, 3])
    XCTAssertEqual(try bytes("one_string"), Array("x".utf8))
    XCTAssertEqual(try bytes("another_string"), [])
    XCTAssertEqual(try message.withBytes(of: 15) { $0.byteCount }, 3)
    for key in ["an_int32", "nested"] {
      expectError(.invalidArgument, "\(key) is no string and no bytes") { try bytes(key) }
    }
    let list = try self.make("Repeated")
    expectError(.invalidArgument, "strings is no string") { try list.withBytes(of: "strings") { _ in } }
    expectError(.invalidArgument, "no field none") { try bytes("none") }
  }

  func testNoDeeperThanWhatIsDecoded() throws {
    var message = try self.make()
    for _ in 0..<99 {
      var outer = try self.make()
      try outer.set("nested", to: .message(message))
      message = outer
    }
    XCTAssertEqual(try DynamicMessage(kindsDescriptor(), serializedBytes: message.serializedBytes()), message)
    var outer = try self.make()
    expectError(.internalError, "nested messages") { try outer.set("nested", to: .message(message)) }
  }

  func testEqualityAndOrderOfMaps() throws {
    let pairs = (0..<20).map { ("key \($0)", "value") }
    var first = try self.make("Maps")
    var second = try self.make("Maps")
    for (message, pairs) in [(0, pairs), (1, pairs.reversed())] {
      let entries = pairs.map { key, value in
        WireWriter.build { writer in
          writer.field(1, key.utf8)
          writer.field(2, value.utf8)
        }.bytes
      }
      let bytes = WireWriter.build { writer in for entry in entries { writer.field(1, entry) } }
      let decoded = try DynamicMessage(kindsDescriptor("Maps"), serializedBytes: bytes.buffer)
      if message == 0 { first = decoded } else { second = decoded }
    }
    XCTAssertNotEqual(try first.serializedBytes(), try second.serializedBytes())
    XCTAssertEqual(
      try first.serializedBytes(deterministic: true),
      try second.serializedBytes(deterministic: true)
    )
    XCTAssertEqual(first, second)
    XCTAssertEqual(first.hashValue, second.hashValue)
    let options = JSONCodingOptions(deterministic: true)
    XCTAssertEqual(try first.jsonBytes(options: options), try second.jsonBytes(options: options))
  }

  /// Finds a field of a type of its own, whatever the message.
  private struct ForeignKey: FieldKey {
    let descriptor: MessageDescriptor

    func find(in descriptor: MessageDescriptor) -> FieldReference? {
      "a_string".find(in: self.descriptor)
    }
  }

  /// The field's place is outside of the message's memory, or has something else.
  func testKeyThatFindsAFieldOfAnotherType() throws {
    let key = ForeignKey(descriptor: try kindsDescriptor())
    var message = DynamicMessage(try kindsDescriptor("Maps.StringsEntry"))
    expectError(.invalidArgument, "Maps.StringsEntry has no field") { try message.value(of: key) }
    expectError(.invalidArgument, "Maps.StringsEntry has no field") { try message.set(key, to: "text") }
    expectError(.invalidArgument, "Maps.StringsEntry has no field") { try message.clear(key) }
    XCTAssertEqual(message, DynamicMessage(message.descriptor))
    // One of the message's type is found.
    var kinds = try self.make()
    try kinds.set(key, to: "text")
    XCTAssertEqual(try kinds.value(of: key), "text")
  }
}
