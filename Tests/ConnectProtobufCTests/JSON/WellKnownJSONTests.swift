internal import Connect
internal import ConnectProtobufC
internal import Foundation
internal import NIOCore
internal import ProtobufCExamples
internal import ProtobufCStubs
internal import SwiftProtobuf
import XCTest

private typealias WellKnown = Connect_Kinds_V1_WellKnown
private typealias CWellKnown = CMessage<Connect__Kinds__V1__WellKnown>

/// The messages that JSON writes in a way of their own.
final class WellKnownJSONTests: XCTestCase {
  private let strict = JSONCodingOptions(ignoreUnknownFields: false)

  /// Expects the text to be read as the message, and the message to be written as the text.
  private func expect(
    _ json: String,
    _ message: WellKnown,
    written: String? = nil,
    file: StaticString = #filePath,
    line: UInt = #line
  ) throws {
    let text = ByteBuffer(string: json)
    let dynamic = try DynamicMessage(kindsDescriptor("WellKnown"), jsonBytes: text, options: self.strict)
    let structure = try CWellKnown(jsonBytes: text, options: self.strict)
    XCTAssertEqual(try WellKnown(dynamic.serializedBytes()), message, json, file: file, line: line)
    XCTAssertEqual(try WellKnown(structure.serializedBytes()), message, json, file: file, line: line)
    XCTAssertEqual(try dynamic.jsonBytes().text, written ?? json, file: file, line: line)
    XCTAssertEqual(try structure.jsonBytes().text, written ?? json, file: file, line: line)
  }

  private func expectRefusal(
    _ json: String,
    _ text: String,
    file: StaticString = #filePath,
    line: UInt = #line
  ) {
    expectError(.internalError, text, file: file, line: line) {
      try CWellKnown(jsonBytes: ByteBuffer(string: json), options: self.strict)
    }
  }

  func testTimestamps() throws {
    func timestamp(_ seconds: Int64, _ nanos: Int32 = 0) -> WellKnown {
      .with { $0.timestamp = .init(seconds: seconds, nanos: nanos) }
    }
    try self.expect(#"{"timestamp":"1970-01-01T00:00:00Z"}"#, timestamp(0))
    try self.expect(#"{"timestamp":"0001-01-01T00:00:00Z"}"#, timestamp(-62_135_596_800))
    try self.expect(
      #"{"timestamp":"9999-12-31T23:59:59.999999999Z"}"#,
      timestamp(253_402_300_799, 999_999_999)
    )
    try self.expect(#"{"timestamp":"2000-02-29T12:34:56.500Z"}"#, timestamp(951_827_696, 500_000_000))
    try self.expect(#"{"timestamp":"1969-12-31T23:59:59.000001Z"}"#, timestamp(-1, 1000))
    try self.expect(
      #"{"timestamp":"1970-01-01T01:30:00.5+02:00"}"#,
      timestamp(-1800, 500_000_000),
      written: #"{"timestamp":"1969-12-31T23:30:00.500Z"}"#
    )
    try self.expect(
      #"{"timestamp":"1970-01-01T00:00:00-08:00"}"#,
      timestamp(28_800),
      written: #"{"timestamp":"1970-01-01T08:00:00Z"}"#
    )
    for text in [
      "1970-01-01", "1970-01-01T00:00:00", "1970-01-01t00:00:00Z", "1970-13-01T00:00:00Z",
      "1970-02-29T00:00:00Z",
      "1970-01-00T00:00:00Z", "1970-01-01T24:00:00Z", "1970-01-01T00:60:00Z", "1970-01-01T00:00:00.Z",
      "1970-01-01T00:00:00.0000000001Z", "0000-01-01T00:00:00Z", "0001-01-01T00:00:00+01:00",
      "9999-12-31T23:59:59-01:00", "1970-01-01T00:00:00ZZ", "",
    ] {
      self.expectRefusal(#"{"timestamp":"\#(text)"}"#, "an RFC 3339 time expected")
    }
    for message in [timestamp(253_402_300_800), timestamp(0, -1), timestamp(0, 1_000_000_000)] {
      expectError(.internalError, "out of a timestamp's range") {
        try CWellKnown(serializedBytes: message.buffer).jsonBytes()
      }
    }
  }

  func testDurations() throws {
    func duration(_ seconds: Int64, _ nanos: Int32 = 0) -> WellKnown {
      .with { $0.duration = .init(seconds: seconds, nanos: nanos) }
    }
    try self.expect(#"{"duration":"0s"}"#, duration(0))
    try self.expect(#"{"duration":"315576000000s"}"#, duration(315_576_000_000))
    try self.expect(#"{"duration":"-1.500s"}"#, duration(-1, -500_000_000))
    try self.expect(#"{"duration":"-0.000000001s"}"#, duration(0, -1))
    try self.expect(#"{"duration":"3.000100s"}"#, duration(3, 100_000))
    for text in [
      "1", "s", "1.s", ".5s", "1.0000000000s", "315576000001s", "99999999999999999999s", "+1s", "1 s", "",
    ] {
      self.expectRefusal(#"{"duration":"\#(text)"}"#, "seconds with an 's' expected")
    }
    for message in [duration(1, -1), duration(-1, 1), duration(315_576_000_001), duration(0, 1_000_000_000)] {
      expectError(.internalError, "out of a duration's range") {
        try CWellKnown(serializedBytes: message.buffer).jsonBytes()
      }
    }
  }

  func testFieldMasks() throws {
    try self.expect(#"{"mask":"aB,c.dE"}"#, .with { $0.mask = .init(protoPaths: "a_b", "c.d_e") })
    try self.expect(#"{"mask":""}"#, .with { $0.mask = .init() })
    for text in ["a_b", "a,,b", "ä"] { self.expectRefusal(#"{"mask":"\#(text)"}"#, "is no path") }
    for path in ["aB", "a__b", "a_1"] {
      expectError(.internalError, "has no name in JSON") {
        try CWellKnown(serializedBytes: WellKnown.with { $0.mask.paths = [path] }.buffer).jsonBytes()
      }
    }
  }

  func testWrappersAndEmpty() throws {
    try self.expect(#"{"empty":{}}"#, .with { $0.empty = .init() })
    try self.expect(
      #"{"aDouble":0,"aFloat":1.5,"anInt64":"5","aUint64":"0","anInt32":-1,"aBool":false,"aString":"","someBytes":""}"#,
      .with {
        $0.aDouble = .init(0)
        $0.aFloat = .init(1.5)
        $0.anInt64 = .init(5)
        $0.aUint64 = .init(0)
        $0.anInt32 = .init(-1)
        $0.aBool = .init(false)
        $0.aString = .init("")
        $0.someBytes = .init(Data())
      }
    )
    try self.expect(#"{"strings":["","x"]}"#, .with { $0.strings = [.init(""), .init("x")] })
    try self.expect(#"{"aDouble":null}"#, .init(), written: "{}")
  }

  func testStructs() throws {
    try self.expect(#"{"value":null}"#, .with { $0.value.nullValue = .nullValue })
    try self.expect(#"{"value":1.5}"#, .with { $0.value = 1.5 })
    try self.expect(#"{"value":"x"}"#, .with { $0.value = "x" })
    try self.expect(#"{"value":true}"#, .with { $0.value = true })
    try self.expect(
      #"{"value":[1,[],{"a":null}]}"#,
      .with {
        $0.value.listValue = [
          1, .init(listValue: []), .init(structValue: ["a": .with { $0.nullValue = .nullValue }]),
        ]
      }
    )
    try self.expect(
      #"{"fields":{"a":[true]},"list":["x"]}"#,
      .with {
        $0.fields = ["a": .init(listValue: [true])]
        $0.list = ["x"]
      }
    )
    try self.expect(
      #"{"values":[null,false]}"#,
      .with {
        $0.values = [.with { $0.nullValue = .nullValue }, false]
      }
    )
    try self.expect(#"{"aNull":null}"#, .init(), written: "{}")
    self.expectRefusal(#"{"value":nul}"#, "a value expected")
    self.expectRefusal(#"{"value":}"#, "a value expected")
    for number in [Double.nan, .infinity] {
      expectError(.internalError, "JSON has no such number") {
        try CWellKnown(serializedBytes: WellKnown.with { $0.value = .init(numberValue: number) }.buffer)
          .jsonBytes()
      }
    }
    expectError(.internalError, "nothing is set") {
      try CWellKnown(serializedBytes: WellKnown.with { $0.value = .init() }.buffer).jsonBytes()
    }
  }

  func testAny() throws {
    let kinds = Kinds.with { $0.anInt32 = 1 }
    try self.expect(
      #"{"any":{"@type":"t/connect.kinds.v1.Kinds","anInt32":1}}"#,
      try .with {
        $0.any = .with { $0.typeURL = "t/connect.kinds.v1.Kinds" }
        $0.any.value = try kinds.serializedData()
      }
    )
    // The type may come last, and what it says decides how the others are read.
    try self.expect(
      #"{"any":{"anInt32":1,"@type":"t/connect.kinds.v1.Kinds"}}"#,
      try .with {
        $0.any = .with { $0.typeURL = "t/connect.kinds.v1.Kinds" }
        $0.any.value = try kinds.serializedData()
      },
      written: #"{"any":{"@type":"t/connect.kinds.v1.Kinds","anInt32":1}}"#
    )
    try self.expect(
      #"{"any":{"@type":"t/google.protobuf.Duration","value":"1s"}}"#,
      try .with {
        $0.any = .with { $0.typeURL = "t/google.protobuf.Duration" }
        $0.any.value = try Google_Protobuf_Duration(seconds: 1).serializedData()
      }
    )
    let inner = try Google_Protobuf_Any.with {
      $0.typeURL = "t/google.protobuf.BoolValue"
      $0.value = try Google_Protobuf_BoolValue(true).serializedData()
    }
    try self.expect(
      #"{"any":{"@type":"t/google.protobuf.Any","value":{"@type":"t/google.protobuf.BoolValue","value":true}}}"#,
      try .with {
        $0.any = .with { $0.typeURL = "t/google.protobuf.Any" }
        $0.any.value = try inner.serializedData()
      }
    )
    try self.expect(#"{"any":{}}"#, .with { $0.any = .init() })
    self.expectRefusal(#"{"any":{"anInt32":1}}"#, "'@type' expected")
    self.expectRefusal(#"{"any":{"@type":"t/a.B"}}"#, "the type 't/a.B' is not known")
    self.expectRefusal(#"{"any":{"@type":"connect.kinds.v1.Kinds"}}"#, "is not known")
    self.expectRefusal(#"{"any":{"@type":"t/google.protobuf.Duration"}}"#, "'value' expected")
    self.expectRefusal(#"{"any":{"@type":"t/google.protobuf.Duration","value":"1s","x":1}}"#, "no field 'x'")
    self.expectRefusal(#"{"any":{"@type":"t/connect.kinds.v1.Kinds","x":1}}"#, "no field 'x'")
    for (type, value) in [("t/a.B", ""), ("", "x"), ("t/connect.kinds.v1.Kinds", "\u{8}")] {
      let message = WellKnown.with {
        $0.any.typeURL = type
        $0.any.value = Data(value.utf8)
      }
      expectError(.internalError, "") { try CWellKnown(serializedBytes: message.buffer).jsonBytes() }
    }
  }

  /// The bytes of an `Any` that does not decode can be kept, at any depth.
  func testUndecodedAny() throws {
    let unknown = Google_Protobuf_Any.with {
      $0.typeURL = "t/a.\"B"
      $0.value = Data([8, 1])
    }
    let broken = Google_Protobuf_Any.with {
      $0.typeURL = "t/connect.kinds.v1.Kinds"
      $0.value = Data([8])
    }
    for (any, expected, urls) in [
      (unknown, #"{"@type":"t/a.\"B","value":"CAE="}"#, ["t/a.\"B"]),
      (broken, #"{"@type":"t/connect.kinds.v1.Kinds","value":"CA=="}"#, []),
    ] {
      let inner = WellKnown.with { $0.any = any }
      let outer = try WellKnown.with {
        $0.any.typeURL = "t/connect.kinds.v1.WellKnown"
        $0.any.value = try inner.serializedData()
      }
      let message = try DynamicMessage(kindsDescriptor("WellKnown"), serializedBytes: outer.buffer)
      let json = try message.jsonWithUndecodedAny()
      XCTAssertEqual(
        json.text.text,
        #"{"any":{"@type":"t/connect.kinds.v1.WellKnown","any":\#(expected)}}"#
      )
      XCTAssertEqual(json.unknownTypeURLs, Set(urls))
      XCTAssertThrowsError(try message.jsonBytes())
    }
  }

  // MARK: Defaults

  /// Fields without presence are written, others are not.
  func testDefaults() throws {
    func json(_ name: String, _ text: String = "{}") throws -> String {
      let message = try DynamicMessage(kindsDescriptor(name), jsonBytes: ByteBuffer(string: text))
      return try message.jsonWithUndecodedAny(emitsDefaults: true).text.text
    }
    XCTAssertEqual(
      try json("Kinds"),
      #"{"aDouble":0,"aFloat":0,"anInt32":0,"anInt64":"0","aUint32":0,"aUint64":"0","aSint32":0,"aSint64":"0","#
        + #""aFixed32":0,"aFixed64":"0","anSfixed32":0,"anSfixed64":"0","aBool":false,"aString":"","#
        + #""someBytes":"","aShade":"SHADE_UNSPECIFIED","ofMyOwn":0,"OddName3":"","farAway":0}"#
    )
    XCTAssertEqual(try json("Optionals"), "{}")
    XCTAssertEqual(try json("Optionals", #"{"aString": "", "nested": {}}"#), #"{"aString":"","nested":{}}"#)
    XCTAssertEqual(
      try json("WellKnown", #"{"timestamp": "1970-01-01T00:00:00Z", "any": {}}"#),
      #"{"any":{},"timestamp":"1970-01-01T00:00:00Z","aNull":null,"values":[],"timestamps":{},"strings":[]}"#
    )
    let maps = try json("Maps", #"{"nested": {"1": {}}}"#)
    XCTAssertTrue(maps.hasPrefix(#"{"strings":{},"doubles":{},"someBytes":{}"#), maps)
    XCTAssertTrue(maps.contains(#""nested":{"1":{"aDouble":0,"#), maps)
    let repeated = try json("Repeated", #"{"nested": [{}]}"#)
    XCTAssertTrue(repeated.contains(#""shades":[],"nested":[{"aDouble":0,"#), repeated)
    // Inside of an Any, too; and nowhere without the option.
    let any = #"{"any":{"@type":"t/connect.kinds.v1.Maps"}}"#
    XCTAssertTrue(try json("WellKnown", any).contains(#"Maps","strings":{},"#))
    let plain = try DynamicMessage(kindsDescriptor("WellKnown"), jsonBytes: ByteBuffer(string: any))
    XCTAssertEqual(try plain.jsonWithUndecodedAny().text.text, any)
  }

  // MARK: Memory of Any

  /// `levels` in one another, each with a list that takes far more memory than bytes.
  private func nestedAny(_ levels: Int) throws -> WellKnown {
    var message = WellKnown()
    for _ in 0..<levels {
      message = try .with { outer in
        outer.any.typeURL = "t/connect.kinds.v1.WellKnown"
        outer.any.value = try WellKnown.with { inner in
          inner.values = Array(repeating: .with { $0.nullValue = .nullValue }, count: 1000)
          if message != WellKnown() { inner.any = message.any }
        }
        .serializedData()
      }
    }
    return message
  }

  /// Each is decoded into memory of its own, while those around it are there.
  func testMemoryOfAnyInAny() throws {
    let limits = DecodingLimits(maximumMemory: 150_000)
    let shallow = try self.nestedAny(1)
    let deep = try self.nestedAny(4)
    let descriptor = try kindsDescriptor("WellKnown")
    // Alone, the largest content takes less than the limit.
    XCTAssertLessThan(deep.any.value.count, 25_000)
    XCTAssertNoThrow(try CWellKnown(serializedBytes: shallow.buffer).jsonBytes(limits: limits))
    let json = ByteBuffer(string: try CWellKnown(serializedBytes: shallow.buffer).jsonBytes().text)
    XCTAssertEqual(try WellKnown(CWellKnown(jsonBytes: json, limits: limits).serializedBytes()), shallow)

    let structure = try CWellKnown(serializedBytes: deep.buffer)
    // The inner ones last, while the lists of the outer ones are there.
    let list = Array(repeating: "null", count: 1000).joined(separator: ",")
    let text = (0..<4).reduce("{}") { inner, _ in
      #"{"@type":"t/connect.kinds.v1.WellKnown","values":[\#(list)],"any":\#(inner)}"#
    }
    let deepJSON = ByteBuffer(string: #"{"any":\#(text)}"#)
    XCTAssertNoThrow(try CWellKnown(jsonBytes: deepJSON))
    XCTAssertNoThrow(try structure.jsonBytes())
    expectError(.resourceExhausted, "of memory") { try structure.jsonBytes(limits: limits) }
    expectError(.resourceExhausted, "of memory") { try CWellKnown(jsonBytes: deepJSON, limits: limits) }
    expectError(.resourceExhausted, "of memory") {
      try DynamicMessage(descriptor, jsonBytes: deepJSON, limits: limits)
    }
    // One after the other, they do not add up.
    let many = Kinds.with { message in
      message.maps.nested = [1, 2, 3].reduce(into: [:]) { $0[$1] = .with { $0.wellKnown = shallow } }
    }
    XCTAssertNoThrow(try CKinds(serializedBytes: many.buffer).jsonBytes(limits: limits))
  }
}
