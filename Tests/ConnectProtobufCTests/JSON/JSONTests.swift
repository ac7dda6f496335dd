internal import Connect
internal import ConnectProtobufC
internal import Foundation
internal import NIOCore
internal import ProtobufCExamples
internal import ProtobufCStubs
internal import SwiftProtobuf
import XCTest

/// proto3's JSON: the cases of the mapping, and what is refused.
final class JSONTests: XCTestCase {
  /// Reads the text as a struct and as a dynamic message, and returns what both wrote.
  private func read(
    _ json: String,
    _ name: String = "Kinds",
    options: JSONCodingOptions = JSONCodingOptions(ignoreUnknownFields: false),
    limits: DecodingLimits = .defaults
  ) throws -> ByteBuffer {
    let text = ByteBuffer(string: json)
    let dynamic = try DynamicMessage(kindsDescriptor(name), jsonBytes: text, options: options, limits: limits)
    let bytes = try dynamic.serializedBytes(deterministic: true)
    switch name {
    case "Kinds":
      let message = try CKinds(jsonBytes: text, options: options, limits: limits)
      XCTAssertEqual(try message.serializedBytes(deterministic: true), bytes)
    case "WellKnown":
      let message = try CMessage<Connect__Kinds__V1__WellKnown>(
        jsonBytes: text,
        options: options,
        limits: limits
      )
      XCTAssertEqual(try message.serializedBytes(deterministic: true), bytes)
    default: break
    }
    return bytes
  }

  private func expect<M: SwiftProtobuf.Message & Equatable>(
    _ json: String,
    _ expected: M,
    _ name: String = "Kinds",
    file: StaticString = #filePath,
    line: UInt = #line
  ) throws {
    XCTAssertEqual(try M(self.read(json, name)), expected, json, file: file, line: line)
    XCTAssertEqual(try M(jsonString: json), expected, "SwiftProtobuf: \(json)", file: file, line: line)
  }

  private func write(_ message: Connect_Kinds_V1_WellKnown) throws -> String {
    try CMessage<Connect__Kinds__V1__WellKnown>(serializedBytes: message.buffer).jsonBytes().text
  }

  // MARK: Fields

  func testNumbers() throws {
    try self.expect(
      #"{"anInt32":"-5","aUint64":18446744073709551615,"anInt64":"-9223372036854775808"}"#,
      Kinds.with {
        $0.anInt32 = -5
        $0.aUint64 = .max
        $0.anInt64 = .min
      }
    )
    try self.expect(
      #" { "anInt32" : 1.0 , "aUint32" : 1e3 , "aSint64" : "2" } "#,
      Kinds.with {
        $0.anInt32 = 1
        $0.aUint32 = 1000
        $0.aSint64 = 2
      }
    )
    try self.expect(
      #"{"aDouble":"Infinity","aFloat":"-Infinity"}"#,
      Kinds.with {
        $0.aDouble = .infinity
        $0.aFloat = -.infinity
      }
    )
    try self.expect(
      #"{"aDouble":"1.5","aFloat":-1.25e-3}"#,
      Kinds.with {
        $0.aDouble = 1.5
        $0.aFloat = -1.25e-3
      }
    )
    try self.expect(
      #"{"anInt64":-12.50e1,"aUint64":10e-1,"anInt32":0.0e99999999999999999999,"aSint32":0e-5}"#,
      Kinds.with {
        $0.anInt64 = -125
        $0.aUint64 = 1
      }
    )
    XCTAssertTrue(try Kinds(self.read(#"{"aDouble":"NaN"}"#)).aDouble.isNaN)
    let message = Kinds.with {
      $0.aDouble = .nan
      $0.aFloat = 0.1
      $0.anInt64 = 1 << 53
    }
    XCTAssertEqual(
      try CKinds(serializedBytes: message.buffer).jsonBytes().text,
      #"{"aDouble":"NaN","aFloat":0.1,"anInt64":"9007199254740992"}"#
    )
  }

  /// SwiftProtobuf rounds these to what a double holds.
  func testIntegersWithAPointAreExact() throws {
    let cases: [(String, Int64)] = [
      ("9007199254740993.0", 9_007_199_254_740_993), ("-9007199254740993.000", -9_007_199_254_740_993),
      ("9223372036854775807.0", .max), ("-922337203685477580.8e1", .min),
      ("0.0000009007199254740993e22", 9_007_199_254_740_993),
      ("1\(String(repeating: "0", count: 1000))e-1000", 1),
    ]
    for (text, number) in cases {
      for text in [text, #""\#(text)""#] {
        XCTAssertEqual(try Kinds(self.read(#"{"anInt64":\#(text)}"#)).anInt64, number, text)
      }
    }
    XCTAssertEqual(
      try Kinds(self.read(#"{"aUint64":1844674407370955161.5e1}"#)).aUint64,
      .max
    )
  }

  func testStringsAndBytes() throws {
    try self.expect(#"{"aString":"\u00e4\ud83d\ude00\n\/\"\\\t"}"#, Kinds.with { $0.aString = "ä😀\n/\"\\\t" })
    for text in ["+/8=", "+/8", "-_8=", "-_8"] {
      try self.expect(#"{"someBytes":"\#(text)"}"#, Kinds.with { $0.someBytes = Data([0xfb, 0xff]) })
    }
    let dynamic = try DynamicMessage(
      kindsDescriptor(),
      jsonBytes: ByteBuffer(string: #"{"aString":"a\u0000b"}"#)
    )
    XCTAssertEqual(try dynamic.value(of: "a_string"), "a\0b")
    XCTAssertEqual(try dynamic.jsonBytes().text, #"{"aString":"a\u0000b"}"#)
    expectError(.internalError, "connect.kinds.v1.Kinds.a_string: has a NUL") {
      try CKinds(jsonBytes: ByteBuffer(string: #"{"aString":"a\u0000b"}"#))
    }
  }

  func testNamesEnumsAndNull() throws {
    try self.expect(
      #"{"an_int32":1,"ofMyOwn":2,"OddName3":"x"}"#,
      Kinds.with {
        $0.anInt32 = 1
        $0.plainName = 2
        $0.odd_Name3 = "x"
      }
    )
    try self.expect(
      #"{"plain_name":2,"_odd__Name_3":"x"}"#,
      Kinds.with {
        $0.plainName = 2
        $0.odd_Name3 = "x"
      }
    )
    try self.expect(#"{"aShade":"SHADE_GLOOMY"}"#, Kinds.with { $0.aShade = .dark })
    try self.expect(#"{"aShade":-3}"#, Kinds.with { $0.aShade = .negative })
    try self.expect(#"{"aShade":55}"#, Kinds.with { $0.aShade = .UNRECOGNIZED(55) })
    try self.expect(
      #"{"aString":null,"nested":null,"repeated":null,"oneString":null,"maps":{}}"#,
      Kinds.with {
        $0.maps = .init()
      }
    )
  }

  func testNamesWithEscapes() throws {
    try self.expect(
      #"{"\u0061Float":1,"\u0061n_int32":2,"n\u0065sted":{"\u0061_string":"x"}}"#,
      Kinds.with {
        $0.aFloat = 1
        $0.anInt32 = 2
        $0.nested.aString = "x"
      }
    )
    // Names that have to be escaped themselves.
    let file = Google_Protobuf_FileDescriptorProto.with {
      $0.name = "a.proto"
      $0.syntax = "proto3"
      $0.messageType = [
        .with {
          $0.name = "M"
          $0.field = [("first", #"a"b"#), ("second", #"a\"b"#), ("third", "ä\n")].enumerated().map {
            index,
            names in
            .with {
              $0.name = names.0
              $0.jsonName = names.1
              $0.number = Int32(index + 1)
              $0.type = .int32
              $0.label = .optional
            }
          }
        }
      ]
    }
    let set = Google_Protobuf_FileDescriptorSet.with { $0.file = [file] }
    let descriptor = try DescriptorPool(serializedFileDescriptorSet: set.buffer).message("M")
    let json = #"{"a\"b":1,"a\\\"b":2,"ä\n":3}"#
    for json in [json, #"{"a\\\"b":2,"\u00e4\n":3,"a\u0022b":1}"#] {
      let message = try DynamicMessage(descriptor, jsonBytes: ByteBuffer(string: json))
      XCTAssertEqual(try (1...3).map { try message.value(of: $0) }, [1, 2, 3], json)
    }
    let second = try DynamicMessage(descriptor, jsonBytes: ByteBuffer(string: #"{"a\\\"b":2}"#))
    XCTAssertFalse(try second.has("first"))
    XCTAssertEqual(try DynamicMessage(descriptor, jsonBytes: ByteBuffer(string: json)).jsonBytes().text, json)
  }

  func testMapsAndOneofs() throws {
    try self.expect(
      #"{"strings":{"":"","k":"v"},"int32s":{"true":1,"false":0},"int64s":{"7":"-7"},"shades":{"1":"SHADE_DARK"}}"#,
      Connect_Kinds_V1_Maps.with {
        $0.strings = ["": "", "k": "v"]
        $0.int32S = [true: 1, false: 0]
        $0.int64S = [7: -7]
        $0.shades = [1: .dark]
      },
      "Maps"
    )
    try self.expect(#"{"oneInt32":0}"#, Kinds.with { $0.oneInt32 = 0 })
    try self.expect(
      #"{"oneString":"","aBool":true}"#,
      Kinds.with {
        $0.oneString = ""
        $0.aBool = true
      }
    )
    for value in ["0", #""""#, "false"] {
      let name = ["0": "anInt32", #""""#: "aString", "false": "aBool"][value] ?? ""
      let bytes = try self.read(#"{"\#(name)":\#(value)}"#, "Optionals")
      XCTAssertNotEqual(bytes.readableBytes, 0, "an optional field that is zero is there")
    }
  }

  func testUnknownNames() throws {
    let json = #"{"none":[{"a":[1,-2.5e3,"x",null,true,false,{}]}],"anInt32":1,"aShade":"SHADE_PINK"}"#
    let ignoring = JSONCodingOptions(ignoreUnknownFields: true)
    XCTAssertEqual(try Kinds(self.read(json, options: ignoring)), .with { $0.anInt32 = 1 })
    let lists = #"{"shades":["SHADE_PINK","SHADE_LIGHT"]}"#
    XCTAssertEqual(
      try Connect_Kinds_V1_Repeated(self.read(lists, "Repeated", options: ignoring)).shades,
      [.light]
    )
    let maps = #"{"shades":{"1":"SHADE_PINK","2":"SHADE_LIGHT"}}"#
    XCTAssertEqual(try Connect_Kinds_V1_Maps(self.read(maps, "Maps", options: ignoring)).shades, [2: .light])
    expectError(.internalError, "has no field 'none'") { try self.read(json) }
    expectError(.internalError, "the enum has no 'SHADE_PINK'") { try self.read(lists, "Repeated") }
  }

  func testRefusedTexts() throws {
    let cases: [(String, String)] = [
      ("", "no text"), (" ", "'{' expected"), ("[]", "'{' expected"), ("{", "expected"), ("{}x", "more text"),
      ("{} {}", "more text"), (#"{"anInt32":1,}"#, "expected"), (#"{"anInt32" 1}"#, "':' expected"),
      (#"{"anInt32":01}"#, "expected"), (#"{"anInt32":1.5}"#, "an integer"),
      (#"{"anInt32":2147483648}"#, "an integer"),
      (#"{"aUint32":-1}"#, "an integer"), (#"{"anInt64":1e30}"#, "an integer"),
      (#"{"anInt32":"1 "}"#, "an integer"), (#"{"anInt64":9223372036854775807.5}"#, "an integer"),
      (#"{"anInt64":9223372036854775808.0}"#, "an integer"), (#"{"anInt64":1e19}"#, "an integer"),
      (#"{"anInt64":1e-1}"#, "an integer"), (#"{"anInt64":1e99999999999999999999}"#, "an integer"),
      (#"{"aUint64":-1.0}"#, "an integer"), (#"{"anInt64":1e-99999999999999999999}"#, "an integer"),
      (#"{"aFloat":"1e40"}"#, "a number"), (#"{"aFloat":-3.5e38}"#, "a number"),
      (#"{"anInt32":""}"#, "an integer"), (#"{"anInt32":"-"}"#, "an integer"),
      (#"{"anInt32":true}"#, "a value"),
      (#"{"aDouble":1e400}"#, "a number"), (#"{"aFloat":1e40}"#, "a number"),
      (#"{"aDouble":"nan"}"#, "a number"), (#"{"aDouble":"Inf"}"#, "a number"),
      (#"{"aDouble":+1}"#, "a value"), (#"{"aDouble":.5}"#, "a value"), (#"{"aDouble":"0x10"}"#, "a number"),
      (#"{"aDouble":NaN}"#, "a value"), (#"{"aBool":"true"}"#, "true or false"),
      (#"{"aBool":1}"#, "true or false"),
      (#"{"aString":5}"#, "expected"), (#"{"aString":"\x"}"#, "an escape"),
      (#"{"aString":"\ud800"}"#, "surrogate"),
      (#"{"aString":"\ude00"}"#, "surrogate"), (#"{"aString":"\ud800\u0041"}"#, "surrogate"),
      (#"{"aString":"\u00g0"}"#, "four hexadecimal digits"),
      ("{\"aString\":\"a\nb\"}", "a control character"),
      (#"{"aString":"abc"#, "without its end"), (#"{"someBytes":"!"}"#, "base64"),
      (#"{"anInt32":1,"anInt32":1}"#, "an_int32: is there twice"),
      (#"{"ofMyOwn":1,"plain_name":1}"#, "is there twice"),
      (#"{"oneInt32":1,"oneString":"x"}"#, "another field of its oneof"),
      (#"{"repeated":{"strings":["a",null]}}"#, "expected"),
      (#"{"repeated":{"nested":[null]}}"#, "null in a list"),
      (#"{"repeated":{"strings":"a"}}"#, "'[' expected"), (#"{"maps":{"strings":{"a":null}}}"#, "expected"),
      (#"{"maps":{"doubles":{"a":1}}}"#, "a map's key"), (#"{"maps":{"int32s":{"1":1}}}"#, "a map's key"),
      (#"{"nested":5}"#, "'{' expected"),
    ]
    for (json, text) in cases { expectError(.internalError, text) { try self.read(json) } }
    var invalid = ByteBuffer(string: #"{"aString":""#)
    invalid.writeBytes([0xff])
    invalid.writeString(#""}"#)
    expectError(.internalError, "invalid UTF-8") { try CKinds(jsonBytes: invalid) }
  }

  // MARK: Limits

  func testDepth() throws {
    func nested(_ levels: Int) -> String {
      String(repeating: #"{"nested":"#, count: levels) + "{}" + String(repeating: "}", count: levels)
    }
    XCTAssertNoThrow(try self.read(nested(99)))
    expectError(.resourceExhausted, "more than 100 nested") { try self.read(nested(100)) }
    expectError(.resourceExhausted, "more than 100 nested") { try self.read(nested(500_000)) }
    for (start, end) in [("[", "]"), (#"{"a":"#, "}")] {
      let value = String(repeating: start, count: 100_000) + "1" + String(repeating: end, count: 100_000)
      expectError(.resourceExhausted, "more than 100 nested") {
        try self.read(#"{"unknown":\#(value)}"#, options: JSONCodingOptions())
      }
      expectError(.resourceExhausted, "more than 100 nested") {
        try self.read(#"{"value":\#(value)}"#, "WellKnown")
      }
    }
    var any = #"{"@type":"t/google.protobuf.Any","value":{}}"#
    for _ in 0..<200 { any = #"{"@type":"t/google.protobuf.Any","value":\#(any)}"# }
    expectError(.resourceExhausted, "nested") { try self.read(#"{"any":\#(any)}"#, "WellKnown") }
  }

  /// Each in the bytes of the one around it, so that no decode sees how deep it is.
  func testDeepAnyIsNotWritten() throws {
    var any = Google_Protobuf_Any()
    for _ in 0..<2000 {
      any = try .with { outer in
        outer.typeURL = "t/google.protobuf.Any"
        outer.value = try any.serializedData()
      }
    }
    let bytes = try Connect_Kinds_V1_WellKnown.with { $0.any = any }.buffer
    let message = try CMessage<Connect__Kinds__V1__WellKnown>(serializedBytes: bytes)
    expectError(.internalError, "more than 100 nested") { try message.jsonBytes() }
  }

  func testMemory() throws {
    let limits = DecodingLimits(maximumMemory: 100_000)
    let list = Array(repeating: "{}", count: 10_000).joined(separator: ",")
    expectError(.resourceExhausted, "more than 100000 bytes") {
      try self.read(#"{"repeated":{"nested":[\#(list)]}}"#, limits: limits)
    }
    let text = String(repeating: "x", count: 200_000)
    expectError(.resourceExhausted, "more than 100000 bytes") {
      try self.read(#"{"aString":"\#(text)"}"#, limits: limits)
    }
  }
}
