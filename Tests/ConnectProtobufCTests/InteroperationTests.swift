internal import Connect
internal import ConnectProtobufC
internal import Foundation
internal import NIOCore
internal import ProtobufCExamples
internal import ProtobufCStubs
internal import SwiftProtobuf
internal import TestSupport
import XCTest

/// Random messages of every kind, between libprotobuf-c and SwiftProtobuf, in both encodings and both directions. The
/// seed is printed, so that a failure can be repeated.
final class InteroperationTests: XCTestCase {
  /// How many random messages to try; `make properties` sets many more than the default.
  private static let rounds =
    ProcessInfo.processInfo.environment["CONNECT_PROPERTY_ROUNDS"].flatMap(Int.init) ?? 2000

  func testRandomMessagesInBothEncodings() throws {
    var random = RandomKinds(random: SeededGenerator())
    let descriptor = try kindsDescriptor()
    for round in 0..<Self.rounds {
      let message = random.kinds()
      let bytes = try message.buffer

      let structure = try CKinds(serializedBytes: bytes)
      self.expectSameFields(structure, message, "round \(round)")
      XCTAssertEqual(try Kinds(structure.serializedBytes()), message, "round \(round)")
      let dynamic = try DynamicMessage(descriptor, serializedBytes: bytes)
      try self.expectSameFields(dynamic, message, "round \(round)")
      XCTAssertEqual(try Kinds(dynamic.serializedBytes()), message, "round \(round)")
      XCTAssertEqual(
        try structure.serializedBytes(deterministic: true),
        try dynamic.serializedBytes(deterministic: true),
        "round \(round)"
      )

      for json in [try structure.jsonBytes(), try dynamic.jsonBytes()] {
        XCTAssertEqual(try Kinds(jsonUTF8Data: json.data), message, "round \(round): \(json.text)")
      }
      let json = try message.jsonBuffer
      let fromJSON = try CKinds(jsonBytes: json)
      self.expectSameFields(fromJSON, message, "round \(round): \(json.text)")
      XCTAssertEqual(try Kinds(fromJSON.serializedBytes()), message, "round \(round): \(json.text)")
      let dynamicFromJSON = try DynamicMessage(descriptor, jsonBytes: json)
      try self.expectSameFields(dynamicFromJSON, message, "round \(round): \(json.text)")
      XCTAssertEqual(try Kinds(dynamicFromJSON.serializedBytes()), message, "round \(round): \(json.text)")
      if (self.testRun?.totalFailureCount ?? 0) > 0 { return }
    }
  }

  private func expectSameFields(_ found: CKinds, _ expected: Kinds, _ context: @autoclosure () -> String) {
    var comparison = FieldComparison()
    comparison.compare(found, expected)
    if !comparison.differences.isEmpty { XCTFail("\(context()): \(comparison.differences)") }
  }

  private func expectSameFields(
    _ found: DynamicMessage,
    _ expected: Kinds,
    _ context: @autoclosure () -> String
  ) throws {
    var comparison = FieldComparison()
    try comparison.compare(found, expected)
    if !comparison.differences.isEmpty { XCTFail("\(context()): \(comparison.differences)") }
  }

  /// The comparison sees what differs.
  func testComparisonOfFields() throws {
    var random = RandomKinds(random: SeededGenerator())
    var message = Kinds()
    while message.choice == nil || message.maps.strings.isEmpty || message.repeated.strings.isEmpty {
      message = random.kinds()
    }
    let found = try CKinds(serializedBytes: message.buffer)
    let changes: [(String, (inout Kinds) -> Void)] = [
      ("a_string", { $0.aString += "x" }), ("choice", { $0.choice = nil }),
      ("maps.", { $0.maps.strings["new"] = "" }), ("repeated.", { $0.repeated.strings[0] += "x" }),
      ("has(nested)", { if $0.hasNested { $0.clearNested() } else { $0.nested = Kinds() } }),
    ]
    for (name, change) in changes {
      var expected = message
      change(&expected)
      var typed = FieldComparison()
      typed.compare(found, expected)
      XCTAssertTrue(typed.differences.contains { $0.contains(name) }, "\(name): \(typed.differences)")
      var dynamic = FieldComparison()
      try dynamic.compare(found.dynamic(), expected)
      XCTAssertFalse(dynamic.differences.isEmpty, name)
    }
  }

  func testOptionsOfJSON() throws {
    var random = RandomKinds(random: SeededGenerator())
    var encoding = JSONEncodingOptions()
    encoding.alwaysPrintEnumsAsInts = true
    encoding.preserveProtoFieldNames = true
    let options = JSONCodingOptions(alwaysPrintEnumsAsInts: true, preserveProtoFieldNames: true)
    for _ in 0..<100 {
      let message = random.kinds()
      let json = try CKinds(serializedBytes: message.buffer).jsonBytes(options: options)
      XCTAssertEqual(try Kinds(jsonUTF8Data: json.data), message)
      let theirs = ByteBuffer(string: try message.jsonString(options: encoding))
      XCTAssertEqual(try Kinds(CKinds(jsonBytes: theirs).serializedBytes()), message)
    }
    let message = Kinds.with {
      $0.aShade = .dark
      $0.plainName = 1
    }
    let json = try CKinds(serializedBytes: message.buffer).jsonBytes(options: options)
    XCTAssertEqual(json.text, #"{"a_shade":2,"plain_name":1}"#)
  }

  func testUnknownFieldsAreKept() throws {
    let message = Kinds.with {
      $0.aString = "known"
      $0.farAway = -1
    }
    let extra = WireWriter.build { writer in
      writer.tag(1000, 0)
      writer.varint(.max)
      writer.field(1001, "text".utf8)
      writer.tag(1002, 5)
      writer.bytes += [1, 2, 3, 4]
      writer.tag(1003, 1)
      writer.bytes += [1, 2, 3, 4, 5, 6, 7, 8]
    }
    var bytes = try message.buffer
    bytes.writeBytes(extra.bytes)
    for encoded in [
      try CKinds(serializedBytes: bytes).serializedBytes(),
      try DynamicMessage(kindsDescriptor(), serializedBytes: bytes).serializedBytes(deterministic: true),
    ] {
      XCTAssertEqual(encoded, bytes)
    }
    // They come after the known ones, wherever they were.
    var first = ByteBuffer(bytes: extra.bytes)
    first.writeImmutableBuffer(try message.buffer)
    XCTAssertEqual(try CKinds(serializedBytes: first).serializedBytes(), bytes)
    var copy = try CKinds(serializedBytes: bytes)
    try copy.set("a_string", to: "changed")
    XCTAssertEqual(Array(try copy.serializedBytes().readableBytesView.suffix(extra.bytes.count)), extra.bytes)
  }

  func testEmptyMessage() throws {
    XCTAssertEqual(try CKinds().serializedBytes().readableBytes, 0)
    XCTAssertEqual(try CKinds(serializedBytes: ByteBuffer()), CKinds())
    XCTAssertEqual(try CKinds().jsonBytes().text, "{}")
    XCTAssertEqual(try DynamicMessage(kindsDescriptor()).serializedBytes().readableBytes, 0)
  }
}
