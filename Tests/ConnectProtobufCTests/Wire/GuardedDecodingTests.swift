internal import Connect
internal import Foundation
internal import LoopbackServer
internal import NIOCore
internal import ProtobufCExamples
internal import ProtobufCStubs
internal import SwiftProtobuf
internal import TestSupport
import XCTest

@testable import ConnectProtobufC

/// What libprotobuf-c by itself would crash on, hang on, or get wrong in silence.
final class GuardedDecodingTests: XCTestCase {
  /// Expects both a struct and a dynamic message to refuse the bytes.
  private func expectRefusal(
    _ writer: WireWriter,
    _ text: String,
    code: Code = .internalError,
    limits: DecodingLimits = .defaults,
    file: StaticString = #filePath,
    line: UInt = #line
  ) throws {
    let descriptor = try kindsDescriptor()
    expectError(code, text, file: file, line: line) {
      try CKinds(serializedBytes: writer.buffer, limits: limits)
    }
    expectError(code, text, file: file, line: line) {
      try DynamicMessage(descriptor, serializedBytes: writer.buffer, limits: limits)
    }
  }

  /// `levels` messages in one another, in field 17.
  private func nested(_ levels: Int) -> WireWriter {
    // From the inside out, backwards, as each length is that of all that was written before.
    var reversed: [UInt8] = []
    for _ in 0..<levels {
      let head = WireWriter.build { writer in
        writer.tag(17, 2)
        writer.varint(UInt64(reversed.count))
      }
      reversed += head.bytes.reversed()
    }
    return WireWriter(bytes: reversed.reversed())
  }

  // MARK: Depth

  func testHalfAMillionLevels() throws {
    try self.expectRefusal(self.nested(500_000), "more than 100 nested messages", code: .resourceExhausted)
  }

  func testDepthIsSwiftProtobufs() throws {
    for levels in [1, 50, 98, 99, 100, 101] {
      let bytes = self.nested(levels)
      let isAccepted = (try? Kinds(serializedBytes: bytes.bytes)) != nil
      XCTAssertEqual((try? CKinds(serializedBytes: bytes.buffer)) != nil, isAccepted, "\(levels) levels")
      XCTAssertEqual(isAccepted, levels < 100, "\(levels) levels")
    }
    try self.expectRefusal(
      self.nested(3),
      "more than 3 nested messages",
      code: .resourceExhausted,
      limits: DecodingLimits(maximumDepth: 3)
    )
  }

  /// Decoding takes some stack for each level; some threads have as little as this.
  func testDeepestMessageFitsASmallStack() throws {
    let bytes = self.nested(99).buffer
    let done = expectation(description: "decoded, copied, encoded")
    let thread = Thread {
      do {
        var message = try CKinds(serializedBytes: bytes)
        let original = message
        try message.set("an_int32", to: 5)
        XCTAssertEqual(try original.serializedBytes(), bytes)
        XCTAssertEqual(message.an_int32, 5)
        done.fulfill()
      } catch {
        XCTFail("\(error)")
      }
    }
    thread.stackSize = 512 * 1024
    thread.start()
    wait(for: [done], timeout: 10)
  }

  // MARK: Memory

  /// libprotobuf-c merges by copying all earlier values for each further message: it would take hours.
  func testManyMerges() throws {
    let list = WireWriter.build { writer in
      for _ in 0..<20 { writer.field(14, "x".utf8) }
    }
    let bytes = WireWriter.build { writer in
      for _ in 0..<100_000 { writer.field(18, list.bytes) }
    }
    XCTAssertEqual(try CKinds(serializedBytes: bytes.buffer).repeated?.n_strings, 2_000_000)
    let limits = DecodingLimits(maximumMemory: 1024 * 1024)
    try self.expectRefusal(bytes, "takes more than 1048576 bytes", code: .resourceExhausted, limits: limits)
  }

  /// What comes later counts, or is added; libprotobuf-c loses some of it.
  func testMessagesSentInPieces() throws {
    let pieces: [Kinds] = [
      .with { $0.nested.anInt32 = 1 },
      .with {
        $0.nested.aString = "kept"
        $0.nested.repeated.int32S = [1, 2]
        $0.nested.repeated.strings = ["a"]
        $0.nested.oneString = "replaced"
        $0.oneNested.aBool = true
      },
      .with {
        $0.nested.anInt32 = 3
        $0.nested.repeated.int32S = [3, 4, 5]
        $0.nested.repeated.strings = ["b", "c", "d", "e", "f"]
        $0.nested.oneInt32 = 7
        $0.oneNested.anInt64 = 9
      },
    ]
    let bytes = try pieces.flatMap { Array(try $0.buffer.readableBytesView) }
    let expected = try Kinds(serializedBytes: bytes)
    XCTAssertEqual(expected.oneNested.aBool, true)
    XCTAssertEqual(try Kinds(CKinds(serializedBytes: ByteBuffer(bytes: bytes)).serializedBytes()), expected)
    let dynamic = try DynamicMessage(kindsDescriptor(), serializedBytes: ByteBuffer(bytes: bytes))
    XCTAssertEqual(try Kinds(dynamic.serializedBytes()), expected)
  }

  func testMessageOfAOneofThatWasReplaced() throws {
    let bytes = WireWriter.build { writer in
      writer.field(38, WireWriter.build { $0.field(14, "gone".utf8) }.bytes)
      writer.field(35, "between".utf8)
      writer.field(38, [])
    }
    let message = try CKinds(serializedBytes: bytes.buffer)
    XCTAssertEqual(message.one_nested?.a_string, "")
    XCTAssertEqual(try Kinds(message.serializedBytes()), try Kinds(serializedBytes: bytes.bytes))
  }

  func testSmallInputForMuchMemory() throws {
    let list = WireWriter.build { writer in
      for _ in 0..<500_000 { writer.field(17, []) }
    }
    let bytes = WireWriter.build { $0.field(18, list.bytes) }
    try self.expectRefusal(bytes, "takes more than 67108864 bytes of memory", code: .resourceExhausted)
    let limits = DecodingLimits(maximumMemory: 1 << 30)
    XCTAssertEqual(try CKinds(serializedBytes: bytes.buffer, limits: limits).repeated?.n_nested, 500_000)
  }

  /// As a message that is received is bounded by the client, so is its memory, unless it is bounded by itself.
  func testMemoryFollowsTheSizeOfTheInput() {
    XCTAssertEqual(DecodingLimits.defaults.memory(forBytes: 100), 64 << 20)
    XCTAssertEqual(DecodingLimits.defaults.memory(forBytes: 100 << 20), 1600 << 20)
    XCTAssertEqual(DecodingLimits(maximumMemory: 5).memory(forBytes: 100 << 20), 5)
  }

  func testManyUnknownFields() throws {
    let bytes = WireWriter.build { writer in
      for _ in 0..<100_000 {
        writer.tag(1000, 0)
        writer.varint(1)
      }
    }
    try self.expectRefusal(
      bytes,
      "takes more than 1000000 bytes of memory",
      code: .resourceExhausted,
      limits: DecodingLimits(maximumMemory: 1_000_000)
    )
    XCTAssertEqual(try CKinds(serializedBytes: bytes.buffer).serializedBytes(), bytes.buffer)
  }

  func testCommonSizesTakeOneChunk() throws {
    let medium = Connect_Test_V1_EchoRequest.with {
      $0.payload.text = String(repeating: "text ", count: 60)
      $0.payload.data = Data(repeating: 7, count: 200)
      $0.payload.words = (0..<10).map { "word \($0)" }
      $0.payload.numbers = (0..<20).map { 1000 * $0 }
      $0.payload.counts = ["one": 1, "two": 2]
      $0.instruction.headers = (0..<5).map { index in
        .with {
          $0.name = "header-\(index)"
          $0.values = ["a value", "another"]
        }
      }
    }
    let message = try CMessage<Connect__Test__V1__EchoRequest>(serializedBytes: medium.buffer)
    XCTAssertEqual(message.handle.storage.arena.chunkCount, 1)
  }

  /// A struct is larger than few bytes make expect.
  func testNoSizeTakesManyChunks() throws {
    var random = RandomKinds(random: SeededGenerator())
    for _ in 0..<300 {
      let bytes = try random.kinds().buffer
      let message = try CKinds(serializedBytes: bytes)
      XCTAssertLessThan(message.handle.storage.arena.chunkCount, 6, "\(bytes.readableBytes) bytes")
    }
  }

  // MARK: Strings

  func testNULInAString() throws {
    let bytes = WireWriter.build { $0.field(14, "ab\0cd".utf8) }
    expectError(.internalError, "connect.kinds.v1.Kinds.a_string: has a NUL") {
      try CKinds(serializedBytes: bytes.buffer)
    }
    // No C string holds the strings of messages that are known at run time.
    let message = try DynamicMessage(kindsDescriptor(), serializedBytes: bytes.buffer)
    XCTAssertEqual(try message.value(of: "a_string"), "ab\0cd")
    XCTAssertEqual(try message.serializedBytes(), bytes.buffer)
  }

  func testInvalidUTF8() throws {
    let invalid: [[UInt8]] = [
      [0x80], [0xc0, 0x80], [0xc1, 0xbf], [0xe0, 0x9f, 0xbf], [0xed, 0xa0, 0x80], [0xf0, 0x8f, 0xbf, 0xbf],
      [0xf4, 0x90, 0x80, 0x80], [0xf5, 0x80, 0x80, 0x80], [0xc3], [0xe2, 0x82], [0xf0, 0x9f, 0x98],
      [0xc3, 0x28],
      Array("12345678".utf8) + [0xff], Array("1234567".utf8) + [0xff] + Array("12345678".utf8),
      [0x41, 0xfe, 0, 0x80],
    ]
    for text in invalid {
      XCTAssertNil(String(validating: text, as: UTF8.self), "\(text)")
      try self.expectRefusal(.build { $0.field(14, text) }, "connect.kinds.v1.Kinds.a_string: invalid UTF-8")
    }
    let list = WireWriter.build { $0.field(14, [0xff]) }
    try self.expectRefusal(
      .build { $0.field(18, list.bytes) },
      "connect.kinds.v1.Repeated.strings: invalid UTF-8"
    )
  }

  func testRandomBytesAreJudgedAsBySwift() {
    var random = SeededGenerator()
    let pieces: [[UInt8]] = [
      Array("abcdefgh".utf8), Array("ä".utf8), Array("€".utf8), Array("😀".utf8), [0x80], [0xe2],
      [0xf0, 0x9f], [0xed],
    ]
    for _ in 0..<20_000 {
      let bytes = (0..<Int.random(in: 0..<8, using: &random)).flatMap { _ in
        pieces.randomElement(using: &random) ?? []
      }
      let isValid = bytes.withUnsafeBytes { buffer -> Bool in
        if case .valid = UTF8Check(buffer) { return true }
        return false
      }
      XCTAssertEqual(isValid, String(validating: bytes, as: UTF8.self) != nil, "\(bytes)")
    }
  }

  // MARK: Damaged bytes

  func testEveryCut() throws {
    var random = RandomKinds(random: SeededGenerator())
    let bytes =
      Array(try random.kinds().buffer.readableBytesView) + WireWriter.build { $0.field(14, "end".utf8) }.bytes
    for length in 0..<bytes.count {
      let cut = ByteBuffer(bytes: bytes[..<length])
      let isAccepted = (try? Kinds(cut)) != nil
      XCTAssertEqual((try? CKinds(serializedBytes: cut)) != nil, isAccepted, "\(length) bytes")
    }
  }

  func testWrongWireTypes() throws {
    // libprotobuf-c reads a Boolean from whatever comes, and a run of values where one value belongs.
    try self.expectRefusal(.build { $0.field(13, [1]) }, "connect.kinds.v1.Kinds.a_bool: wrong wire type 2")
    try self.expectRefusal(.build { $0.field(3, [1]) }, "connect.kinds.v1.Kinds.an_int32: wrong wire type 2")
    try self.expectRefusal(
      .build {
        $0.tag(14, 0)
        $0.varint(5)
      },
      "connect.kinds.v1.Kinds.a_string: wrong wire type 0"
    )
    try self.expectRefusal(
      .build {
        $0.tag(1, 5)
        $0.bytes += [1, 2, 3, 4]
      },
      "connect.kinds.v1.Kinds.a_double: wrong wire type 5"
    )
  }

  func testMalformedBytes() throws {
    let cases: [([UInt8], String)] = [
      ([0x00], "field number 0"),
      ([0x80], "a cut or too long tag"),
      ([0x80, 0x80, 0x80, 0x80, 0x80, 0x01], "a tag out of range"),
      ([0xff, 0xff, 0xff, 0xff, 0x7f, 0x00], "a tag out of range"),
      ([0x18], "field 3 is a cut or too long varint"),
      ([0x18] + Array(repeating: 0x80, count: 11) + [0], "field 3 is a cut or too long varint"),
      ([0x09, 1, 2, 3], "field 1 is cut"),
      ([0x72, 0x05, 0x61], "field 14 is cut: 1 of 5 bytes"),
      ([0x72, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00], "field 14 has a cut or too long length"),
      ([0x72, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x61], "field 14 is cut"),
      ([0x1b, 0x1c], "field 3 is a group"), ([0xc3, 0x3e, 0xc4, 0x3e], "field 1000 is a group"),
      ([0x1e], "wire type 6"),
    ]
    for (bytes, text) in cases { try self.expectRefusal(WireWriter(bytes: bytes), text) }
    let run = WireWriter.build { $0.field(1, [1, 2, 3]) }
    try self.expectRefusal(.build { $0.field(18, run.bytes) }, "connect.kinds.v1.Repeated.doubles: 3 bytes")
    let numbers = WireWriter.build { $0.field(3, [0x80]) }
    try self.expectRefusal(.build { $0.field(18, numbers.bytes) }, "connect.kinds.v1.Repeated.int32s: a cut")
    let long = WireWriter.build { $0.field(3, Array(repeating: 0x80, count: 10) + [0]) }
    try self.expectRefusal(.build { $0.field(18, long.bytes) }, "a varint in a run of values is too long")
  }

  // MARK: What stays as libprotobuf-c does it

  /// A number's last value counts, runs and single values mix, booleans may be long.
  func testUnusualButValidBytes() throws {
    let list = WireWriter.build { writer in
      writer.tag(3, 0)
      writer.varint(1)
      writer.field(3, [2, 3])
      writer.field(18, [4])
    }
    let bytes = WireWriter.build { writer in
      writer.tag(3, 0)
      writer.varint(1)
      writer.tag(3, 0)
      writer.varint(0xffff_ffff_0000_0002)
      writer.tag(13, 0)
      writer.varint(1 << 40)
      writer.field(18, list.bytes)
    }
    let message = try Kinds(serializedBytes: bytes.bytes)
    XCTAssertEqual(message.anInt32, 2)
    XCTAssertEqual(message.repeated.int32S, [1, 2, 3])
    XCTAssertEqual(try Kinds(CKinds(serializedBytes: bytes.buffer).serializedBytes()), message)
  }

  func testNegativeZeroIsReadButNotWritten() throws {
    let message = try CKinds(serializedBytes: Kinds.with { $0.aDouble = -0.0 }.buffer)
    XCTAssertEqual(message.a_double.sign, .minus)
    XCTAssertEqual(try message.jsonBytes().text, #"{"aDouble":-0}"#)
    XCTAssertEqual(try message.serializedBytes().readableBytes, 0)
    let present = Kinds.with {
      $0.oneDouble = -0.0
      $0.optionals.aFloat = -0.0
      $0.repeated.doubles = [-0.0]
    }
    XCTAssertEqual(try CKinds(serializedBytes: present.buffer).serializedBytes(), try present.buffer)
  }

  /// proto2's enums have no other values: SwiftProtobuf keeps such numbers among the unknown fields.
  func testNumbersThatAClosedEnumLacks() throws {
    let bytes = WireWriter.build { writer in
      writer.tag(5, 0)
      writer.varint(9)
    }
    let theirs = try Connect_Kinds_V1_Legacies(serializedBytes: bytes.bytes)
    XCTAssertNil(theirs.choice)
    XCTAssertEqual(try theirs.jsonString(), "{}")
    let structure = try CMessage<Connect__Kinds__V1__Legacies>(serializedBytes: bytes.buffer)
    XCTAssertEqual(structure.tone.rawValue, 9)
    let dynamic = try structure.dynamic()
    XCTAssertEqual(try dynamic.value(of: "tone"), .enumeration(9))
    XCTAssertNil(try dynamic.enumName(of: "tone"))
    XCTAssertEqual(try structure.jsonBytes().text, #"{"tone":9}"#)
    // On the wire nothing is lost.
    XCTAssertEqual(try structure.serializedBytes(), try theirs.buffer)
    let json = ByteBuffer(string: #"{"tone":9}"#)
    XCTAssertThrowsError(try Connect_Kinds_V1_Legacies(jsonUTF8Data: json.data))
    XCTAssertEqual(try CMessage<Connect__Kinds__V1__Legacies>(jsonBytes: json), structure)
  }

  func testEntriesOfOneKeyAreKeptAndTheLastCounts() throws {
    func entry(_ value: String) -> [UInt8] {
      WireWriter.build { writer in
        writer.field(1, "key".utf8)
        writer.field(2, value.utf8)
      }.bytes
    }
    let maps = WireWriter.build { writer in
      for value in ["first", "last"] { writer.field(1, entry(value)) }
    }
    let bytes = WireWriter.build { $0.field(19, maps.bytes) }
    let message = try CKinds(serializedBytes: bytes.buffer)
    XCTAssertEqual(message.maps?.n_strings, 2)
    XCTAssertEqual(try message.serializedBytes(), bytes.buffer)
    XCTAssertEqual(try message.jsonBytes().text, #"{"maps":{"strings":{"key":"last"}}}"#)
    XCTAssertEqual(try Kinds(message.serializedBytes(deterministic: true)).maps.strings, ["key": "last"])
    guard case .message(let inner) = try message.dynamic().value(of: "maps") else {
      return XCTFail("no message")
    }
    XCTAssertEqual(try inner.value(of: "strings"), ["key": "last"])
  }
}
