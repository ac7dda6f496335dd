internal import CProtobufC
internal import Connect
internal import ConnectProtobufC
internal import Foundation
internal import NIOCore
internal import ProtobufCExamples
internal import ProtobufCStubs
internal import SwiftProtobuf
import XCTest

/// protoc-c structs as values.
final class CMessageTests: XCTestCase {
  private func example() throws -> CKinds {
    var message = CKinds()
    try message.update { fields, arena in
      fields.an_int32 = 5
      fields.a_string = try arena.string("text")
      fields.some_bytes = arena.bytes([1, 2, 3])
      fields.a_shade = CONNECT__KINDS__V1__SHADE__SHADE_DARK
      fields.nested = try arena.message { (inner: inout Connect__Kinds__V1__Kinds) in
        inner.a_string = try arena.string("inner")
      }
      fields.repeated = try arena.message { (list: inout Connect__Kinds__V1__Repeated) in
        list.int64s = arena.array([1, 2, 3])
        list.n_int64s = 3
        list.strings = arena.array([try arena.string("a"), try arena.string("b")])
        list.n_strings = 2
        list.some_bytes = arena.array([arena.bytes([9])])
        list.n_some_bytes = 1
        list.shades = arena.array([CONNECT__KINDS__V1__SHADE__SHADE_LIGHT])
        list.n_shades = 1
        list.nested = arena.array([arena.message(Connect__Kinds__V1__Kinds.self) { $0.an_int32 = 8 }])
        list.n_nested = 1
      }
      fields.choice_case = CONNECT__KINDS__V1__KINDS__CHOICE_ONE_STRING
      fields.one_string = try arena.string("chosen")
    }
    return message
  }

  private let expected = Kinds.with {
    $0.anInt32 = 5
    $0.aString = "text"
    $0.someBytes = Data([1, 2, 3])
    $0.aShade = .dark
    $0.nested.aString = "inner"
    $0.repeated.int64S = [1, 2, 3]
    $0.repeated.strings = ["a", "b"]
    $0.repeated.someBytes = [Data([9])]
    $0.repeated.shades = [.light]
    $0.repeated.nested = [.with { $0.anInt32 = 8 }]
    $0.oneString = "chosen"
  }

  func testWritingAndReading() throws {
    let written = try self.example()
    XCTAssertEqual(try Kinds(written.serializedBytes()), self.expected)
    for message in [written, try CKinds(serializedBytes: self.expected.buffer)] {
      XCTAssertEqual(message.an_int32, 5)
      XCTAssertEqual(message.a_string, "text")
      XCTAssertEqual(Array(message.some_bytes.readableBytesView), [1, 2, 3])
      XCTAssertEqual(message.a_shade, CONNECT__KINDS__V1__SHADE__SHADE_DARK)
      XCTAssertEqual(message.nested?.a_string, "inner")
      XCTAssertNil(message.nested?.nested)
      let list = try XCTUnwrap(message.repeated)
      XCTAssertEqual(list.list(\.int64s, count: \.n_int64s), [1, 2, 3])
      XCTAssertEqual(list.list(\.strings, count: \.n_strings), ["a", "b"])
      XCTAssertEqual(list.list(\.some_bytes, count: \.n_some_bytes), [ByteBuffer(bytes: [9])])
      XCTAssertEqual(list.list(\.shades, count: \.n_shades), [CONNECT__KINDS__V1__SHADE__SHADE_LIGHT])
      XCTAssertEqual(list.list(\.nested, count: \.n_nested).map(\.an_int32), [8])
      XCTAssertEqual(list.list(\.doubles, count: \.n_doubles), [])
      XCTAssertEqual(message.choice_case, CONNECT__KINDS__V1__KINDS__CHOICE_ONE_STRING)
      XCTAssertEqual(message.one_string, "chosen")
    }
  }

  func testValueSemantics() throws {
    var first = try self.example()
    let bytes = try first.serializedBytes()
    let second = first
    let inner = try XCTUnwrap(first.nested)
    first.update { fields, _ in
      fields.an_int32 = 6
      fields.nested = nil
    }
    XCTAssertEqual(first.an_int32, 6)
    XCTAssertEqual(try second.serializedBytes(), bytes)
    XCTAssertEqual(inner.a_string, "inner")
    XCTAssertNotEqual(first, second)

    // A message inside another is a value of its own.
    var changed = inner
    try changed.set("a_string", to: "changed")
    XCTAssertEqual(second.nested?.a_string, "inner")
    XCTAssertEqual(changed.a_string, "changed")
    XCTAssertEqual(Set([second, second, changed]).count, 2)
  }

  func testTheInnerMessageOutlivesTheOuter() throws {
    func inner() throws -> CKinds? { try CKinds(serializedBytes: self.expected.buffer).nested }
    var message = try XCTUnwrap(try inner())
    XCTAssertEqual(message.a_string, "inner")
    try message.set("an_int32", to: 3)
    XCTAssertEqual(
      try Kinds(message.serializedBytes()),
      .with {
        $0.aString = "inner"
        $0.anInt32 = 3
      }
    )
  }

  func testMembersOfAOneofThatAreNotSet() throws {
    var message = CKinds()
    // As a pointer it would be an address that is not there.
    try message.set("one_uint64", to: 0x1234_5678_9abc)
    XCTAssertEqual(message.one_uint64, 0x1234_5678_9abc)
    XCTAssertEqual(message.one_string, "")
    XCTAssertEqual(message.one_bytes, ByteBuffer())
    XCTAssertNil(message.one_nested)
    try message.set("one_string", to: "set")
    XCTAssertEqual(message.one_string, "set")
    XCTAssertNil(message.one_nested)
    XCTAssertEqual(try Kinds(message.serializedBytes()).choice, .oneString("set"))
    try message.set("one_nested", to: .message(CKinds().dynamic()))
    XCTAssertEqual(message.one_nested, CKinds())
    XCTAssertEqual(message.one_string, "")
  }

  /// The pointer that such a member's memory holds is another type's.
  func testAMemberOfAOneofWhileAnotherMessageIsSet() throws {
    let value = Google_Protobuf_Value(listValue: Google_Protobuf_ListValue(values: [1.5]))
    let bytes = ByteBuffer(bytes: try value.serializedBytes() as [UInt8])
    let decoded = try CMessage<Google__Protobuf__Value>(serializedBytes: bytes)
    XCTAssertNil(decoded.struct_value)
    XCTAssertNotNil(decoded.list_value)
  }

  func testFieldsByNameAndNumber() throws {
    var message = CKinds()
    try message.set("a_string", to: "name")
    try message.set(3, to: -7)
    XCTAssertEqual(message.a_string, "name")
    XCTAssertEqual(try message.dynamic().value(of: 14), "name")
    XCTAssertEqual(try message.dynamic().value(of: "an_int32"), -7)
    XCTAssertEqual(try CKinds(message.dynamic()), message)
    expectError(.invalidArgument, "connect.kinds.v1.Kinds has no field none") {
      try message.set("none", to: 1)
    }
    expectError(.invalidArgument, "an_int32 does not take a string") { try message.set("an_int32", to: "1") }
    XCTAssertEqual(message.a_string, "name", "an error leaves the message as it was")
    expectError(.invalidArgument, "has a NUL") { try message.set("a_string", to: "a\0b") }
  }

  // MARK: C

  func testPointersOfC() throws {
    let message = try self.example()
    let bytes = try message.serializedBytes()
    let pointer = try message.copyForC()
    let copy = try CMessage(copying: pointer)
    let borrowed = try CMessage(unsafeBorrowing: pointer)
    XCTAssertEqual(try copy.serializedBytes(), bytes)
    XCTAssertEqual(try borrowed.serializedBytes(), bytes)
    var changed = borrowed
    try changed.set("an_int32", to: 1)
    XCTAssertEqual(pointer.pointee.an_int32, 5, "a change of the borrowed message copies it")
    XCTAssertEqual(changed.an_int32, 1)
    connect__kinds__v1__kinds__free_unpacked(pointer, nil)
    XCTAssertEqual(try copy.serializedBytes(), bytes)
    XCTAssertEqual(try Kinds(changed.serializedBytes()).nested.aString, "inner")
    let size = message.withUnsafePointer { connect__kinds__v1__kinds__get_packed_size($0) }
    XCTAssertEqual(size, bytes.readableBytes)
  }

  func testPointersOfAnotherType() throws {
    var other = Connect__Test__V1__Payload()
    connect__test__v1__payload__init(&other)
    withUnsafePointer(to: &other) { pointer in
      pointer.withMemoryRebound(to: Connect__Kinds__V1__Kinds.self, capacity: 1) { kinds in
        expectError(.invalidArgument, "to be a connect.kinds.v1.Kinds is a connect.test.v1.Payload") {
          try CMessage(copying: kinds)
        }
      }
    }
    var blank = Connect__Kinds__V1__Kinds()
    expectError(.invalidArgument, "was not initialised") { try CMessage(unsafeBorrowing: &blank) }
    expectError(.invalidArgument, "is no struct") {
      try CMessage<Connect__Kinds__V1__Maps>(CKinds().dynamic())
    }
  }

  func testBytesInPlace() throws {
    let message = try self.example()
    func bytes(_ span: RawSpan) -> [UInt8] {
      span.byteOffsets.map { span.unsafeLoad(fromByteOffset: $0, as: UInt8.self) }
    }
    XCTAssertEqual(message.withBytes(\.some_bytes, bytes), [1, 2, 3])
    XCTAssertEqual(message.withBytes(\.a_string, bytes), Array("text".utf8))
    XCTAssertEqual(message.withBytes(\.one_string, bytes), Array("chosen".utf8))
    XCTAssertEqual(message.withBytes(\.one_bytes, bytes), [], "not the member that is set")
    XCTAssertEqual(CKinds().withBytes(\.some_bytes, bytes), [])
    XCTAssertEqual(CKinds().withBytes(\.a_string, bytes), [])
    // What is read is the message's own memory.
    let start = message.withBytes(\.some_bytes) { span in span.withUnsafeBytes { $0.baseAddress } }
    XCTAssertEqual(start, UnsafeRawPointer(message.pointee.some_bytes.data))
    XCTAssertThrowsError(try message.withBytes(\.a_string) { _ in throw CancellationError() })
  }

  // MARK: Sharing

  func testSharedBetweenTasks() async throws {
    let message = try self.example()
    let bytes = try message.serializedBytes()
    await withTaskGroup(of: Bool.self) { group in
      for number in 0..<16 {
        group.addTask {
          var own = message
          for round in 0..<200 {
            guard (try? message.serializedBytes()) == bytes, message.nested?.a_string == "inner" else {
              return false
            }
            own.update { fields, _ in fields.an_int32 = Int32(number * 1000 + round) }
            guard own.an_int32 == number * 1000 + round else { return false }
          }
          return true
        }
      }
      for await isRight in group { XCTAssertTrue(isRight) }
    }
    XCTAssertEqual(try message.serializedBytes(), bytes)
  }

  // MARK: Types without descriptor sets

  func testTypeWithoutDescriptorSet() throws {
    let type = CMessageType<Connect__Kinds__V1__Kinds>(connect__kinds__v1__kinds__init)
    XCTAssertEqual(type.name, "connect.kinds.v1.Kinds")
    var bare = CMessage<Bare>()
    try bare.set("a_string", to: "set")
    XCTAssertEqual(try bare.dynamic().value(of: 14), "set")
    XCTAssertEqual(try bare.dynamic().value(of: "a_shade"), .enumeration(0))
    expectError(.invalidArgument, "JSON needs the descriptor set of") { try bare.jsonBytes() }
    expectError(.invalidArgument, "JSON needs the descriptor set of") {
      try CMessage<Bare>(jsonBytes: ByteBuffer(string: "{}"))
    }
  }

  func testUnusableDescriptorSet() throws {
    for source in [DescriptorSource(base64: "!"), DescriptorSource(ByteBuffer(bytes: [1, 2, 3]))] {
      expectError(.invalidArgument, "descriptor set") { try source.pool() }
    }
  }
}

/// A struct whose type knows no more than protoc-c wrote.
private struct Bare: CMessageStruct {
  static let messageType = CMessageType<Bare>({ pointer in
    UnsafeMutableRawPointer(pointer).withMemoryRebound(to: Connect__Kinds__V1__Kinds.self, capacity: 1) {
      connect__kinds__v1__kinds__init($0)
    }
  })

  var fields: Connect__Kinds__V1__Kinds
}
