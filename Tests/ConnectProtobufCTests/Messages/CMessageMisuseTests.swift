internal import CProtobufC
internal import Connect
internal import ConnectProtobufC
internal import NIOCore
internal import ProtobufCExamples
internal import ProtobufCStubs
internal import SwiftProtobuf
import XCTest

/// What C code, or a closure that changes a struct, left half-made.
final class CMessageMisuseTests: XCTestCase {
  func testStructsThatCannotBeEncoded() throws {
    let wrong: [(String, (inout Connect__Kinds__V1__Kinds, CMessageArena) throws -> Void)] = [
      ("Kinds.some_bytes: 3 bytes at a null pointer", { fields, _ in fields.some_bytes.len = 3 }),
      (
        "Kinds.a_string: invalid UTF-8",
        { fields, arena in
          fields.a_string = arena.array([CChar(bitPattern: 0xff), 0])
        }
      ),
      (
        "Repeated.int32s: 4 values in no array",
        { fields, arena in
          fields.repeated = arena.message { $0.n_int32s = 4 }
        }
      ),
      (
        "Repeated.strings[0]: a null pointer",
        { fields, arena in
          fields.repeated = arena.message { list in
            list.strings = arena.array([nil])
            list.n_strings = 1
          }
        }
      ),
      (
        "more than 100 nested messages",
        { fields, arena in
          var inner = arena.message(Connect__Kinds__V1__Kinds.self)
          for _ in 0..<99 { inner = arena.message { $0.nested = inner } }
          fields.nested = inner
        }
      ),
    ]
    for (text, change) in wrong {
      var message = CKinds()
      try message.update { try change(&$0, $1) }
      expectError(.internalError, text) { try message.serializedBytes() }
      expectError(.internalError, text) { try message.serializedBytes(deterministic: true) }
      expectError(.internalError, text) { try message.jsonBytes() }
      var copy = message
      copy.update { fields, _ in fields.an_int32 = 1 }
      expectError(.internalError, text) { try copy.serializedBytes() }
      expectError(.internalError, text) { try message.withUnsafePointer { _ = try CMessage(copying: $0) } }
    }
    expectError(.invalidArgument, "has a NUL") { () throws in
      var message = CKinds()
      try message.update { $0.a_string = try $1.string("a\0b") }
    }
  }

  /// C code that is wrong must not end the process where that can be seen.
  func testReadingStructsThatAreWrong() throws {
    var message = CKinds()
    message.update { fields, arena in
      fields.some_bytes.len = 3
      fields.nested = arena.array([Connect__Kinds__V1__Kinds()])
      fields.repeated = arena.message { (list: inout Connect__Kinds__V1__Repeated) in
        list.n_int32s = 4
        list.n_strings = 4
        list.n_shades = 4
        list.n_some_bytes = 1
        list.some_bytes = arena.array([ProtobufCBinaryData(len: 5, data: nil)])
        list.n_nested = 2
        list.nested = arena.array([nil, arena.array([Connect__Kinds__V1__Kinds()])])
        list.n_doubles = -1
        list.doubles = arena.array([1.5])
      }
      fields.maps = arena.message { $0.n_strings = 4 }
      fields.well_known = arena.message { $0.n_values = -4 }
    }
    var copy = message
    copy.update { fields, _ in fields.an_int32 = 1 }
    for message in [message, copy] {
      XCTAssertEqual(message.some_bytes, ByteBuffer())
      XCTAssertEqual(message.withBytes(\.some_bytes) { $0.byteCount }, 0)
      XCTAssertNil(message.nested)
      let list = try XCTUnwrap(message.repeated)
      XCTAssertEqual(list.list(\.int32s, count: \.n_int32s), [])
      XCTAssertEqual(list.list(\.strings, count: \.n_strings), [])
      XCTAssertEqual(list.list(\.shades, count: \.n_shades), [])
      XCTAssertEqual(list.list(\.some_bytes, count: \.n_some_bytes), [ByteBuffer()])
      XCTAssertEqual(list.list(\.nested, count: \.n_nested), [])
      XCTAssertEqual(list.list(\.doubles, count: \.n_doubles), [])
      XCTAssertEqual(message.maps?.list(\.strings, count: \.n_strings), [])
      let dynamic = try message.dynamic()
      XCTAssertEqual(try dynamic.value(of: "some_bytes"), .bytes(ByteBuffer()))
      XCTAssertEqual(try dynamic.value(of: "nested"), .message(DynamicMessage(dynamic.descriptor)))
      guard case .message(let fields) = try dynamic.value(of: "repeated") else {
        return XCTFail("no message")
      }
      for name in ["int32s", "strings", "shades", "doubles"] {
        XCTAssertEqual(try fields.value(of: name), [], name)
        _ = try fields.has(name)
      }
      XCTAssertEqual(try fields.value(of: "some_bytes"), [.bytes(ByteBuffer())])
      expectError(.internalError, "some_bytes: 3 bytes at a null pointer") { try message.serializedBytes() }
      XCTAssertFalse(message.debugDescription.isEmpty)
    }
    XCTAssertNotEqual(message, copy)
  }

  func testInnerStructsThatWereNotInitialised() throws {
    var message = CKinds()
    message.update { fields, arena in fields.nested = arena.array([Connect__Kinds__V1__Kinds()]) }
    var copy = message
    copy.update { fields, _ in fields.an_int32 = 1 }
    for message in [message, copy] {
      XCTAssertNil(message.nested)
      expectError(.invalidArgument, "to be a connect.kinds.v1.Kinds was not initialised") {
        try message.serializedBytes()
      }
      expectError(.invalidArgument, "was not initialised") { try message.jsonBytes() }
      expectError(.invalidArgument, "was not initialised") { try message.copyForC() }
    }
  }

  func testUnknownFieldsThatAreWrong() throws {
    var message = CKinds()
    message.update { fields, _ in fields.base.n_unknown_fields = 2 }
    expectError(.internalError, "Kinds: 2 unknown fields in no array") { try message.serializedBytes() }
    message.update { fields, arena in
      var field = ProtobufCMessageUnknownField()
      field.len = 5
      fields.base.unknown_fields = arena.array([field, field])
    }
    var copy = message
    copy.update { fields, _ in fields.an_int32 = 1 }
    for message in [message, copy] {
      expectError(.internalError, "an unknown field's 5 bytes at a null pointer") {
        try message.serializedBytes()
      }
    }
  }

  /// Without bytes to compare, only the same memory is known to hold the same.
  func testEqualityOfWhatCannotBeEncoded() {
    var first = CKinds()
    first.update { fields, _ in fields.some_bytes.len = 3 }
    var second = CKinds()
    second.update { fields, arena in fields.repeated = arena.message { $0.n_int32s = 4 } }
    let copy = first
    XCTAssertEqual(first, copy)
    XCTAssertNotEqual(first, second)
    XCTAssertNotEqual(first, CKinds())
    XCTAssertEqual(Set([first, copy, second]).count, 2)
  }

  /// As after a change of the proto file, or by an option of protoc-c such as `string_as_bytes`.
  func testDescriptorSetOfAnotherStruct() throws {
    expectError(.invalidArgument, "Kinds.a_bool: the struct is not what its descriptor set says") {
      try CMessage<Changed>().jsonBytes()
    }
    expectError(.invalidArgument, "is not what its descriptor set says") { try CMessage<Changed>().dynamic() }
    XCTAssertEqual(try CMessage<Changed>().serializedBytes().readableBytes, 0)
  }
}

/// A struct whose descriptor set has a string in the place of a Boolean.
private struct Changed: CMessageStruct {
  private static let descriptors: DescriptorSource = {
    let names = (try? kindsDescriptor().fieldNames) ?? []
    let set = Google_Protobuf_FileDescriptorSet.with {
      $0.file = [
        .with { file in
          file.package = "connect.kinds.v1"
          file.syntax = "proto3"
          file.messageType = [
            .with { message in
              message.name = "Kinds"
              message.field = names.prefix(13).enumerated().map { index, name in
                .with {
                  $0.name = name
                  $0.number = Int32(index + 1)
                  $0.type = Self.types[index]
                  $0.label = .optional
                }
              }
            }
          ]
        }
      ]
    }
    return DescriptorSource((try? set.buffer) ?? ByteBuffer())
  }()

  private static let types: [Google_Protobuf_FieldDescriptorProto.TypeEnum] = [
    .double, .float, .int32, .int64, .uint32, .uint64, .sint32, .sint64, .fixed32, .fixed64, .sfixed32,
    .sfixed64,
    .string,
  ]

  static let messageType = CMessageType<Changed>(
    { pointer in
      UnsafeMutableRawPointer(pointer).withMemoryRebound(to: Connect__Kinds__V1__Kinds.self, capacity: 1) {
        connect__kinds__v1__kinds__init($0)
      }
    },
    descriptors: Self.descriptors
  )

  var fields: Connect__Kinds__V1__Kinds
}
