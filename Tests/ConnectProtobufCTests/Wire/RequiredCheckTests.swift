internal import Connect
internal import ConnectProtobufC
internal import Foundation
internal import NIOCore
internal import ProtobufCExamples
internal import ProtobufCStubs
internal import SwiftProtobuf
import XCTest

private typealias Legacy = Connect_Kinds_V1_Legacy
private typealias Legacies = Connect_Kinds_V1_Legacies
private typealias CLegacy = CMessage<Connect__Kinds__V1__Legacy>
private typealias CLegacies = CMessage<Connect__Kinds__V1__Legacies>

/// Required fields, which SwiftProtobuf asks for in binary and not in JSON.
final class RequiredCheckTests: XCTestCase {
  /// All required fields are set, to what C cannot tell from not set.
  private let whole = Legacy.with {
    $0.number = 0
    $0.text = ""
    $0.someBytes = Data()
    $0.inner.id = 0
  }

  private func descriptor(_ name: String = "Legacy") throws -> MessageDescriptor {
    try connectKindsV1LegacyDescriptors.pool().message("connect.kinds.v1.\(name)")
  }

  /// The name of each required field, and the message without it.
  private var incomplete: [(String, Legacy)] {
    let changes: [(String, (inout Legacy) -> Void)] = [
      ("Legacy.number", { $0.clearNumber() }), ("Legacy.text", { $0.clearText() }),
      ("Legacy.some_bytes", { $0.clearSomeBytes() }), ("Legacy.inner", { $0.clearInner() }),
      ("Inner.id", { $0.inner.clearID() }),
    ]
    return changes.map { name, change in
      var message = self.whole
      change(&message)
      return (name, message)
    }
  }

  private func partialBytes(_ message: some SwiftProtobuf.Message) throws -> ByteBuffer {
    ByteBuffer(bytes: try message.serializedBytes(partial: true) as [UInt8])
  }

  // MARK: Binary

  func testDecoding() throws {
    for (name, message) in self.incomplete {
      let outers: [Legacies] = [
        .with { $0.one = message }, .with { $0.many = [self.whole, message] },
        .with { $0.named = ["": message] },
        .with { $0.chosen = message },
      ]
      for outer in outers {
        let bytes = try self.partialBytes(outer)
        XCTAssertThrowsError(try Legacies(bytes))
        expectError(.internalError, "cannot decode: connect.kinds.v1.") {
          try CLegacies(serializedBytes: bytes)
        }
        expectError(.internalError, "\(name): required, but not set") {
          try CLegacies(serializedBytes: bytes)
        }
        expectError(.internalError, "\(name): required, but not set") {
          try DynamicMessage(self.descriptor("Legacies"), serializedBytes: bytes)
        }
      }
      let bytes = try self.partialBytes(message)
      expectError(.internalError, "\(name): required, but not set") { try CLegacy(serializedBytes: bytes) }
      expectError(.internalError, "\(name): required, but not set") {
        try DynamicMessage(self.descriptor(), serializedBytes: bytes)
      }
    }
    let bytes = try self.whole.buffer
    XCTAssertEqual(try CLegacy(serializedBytes: bytes).serializedBytes(), bytes)
    XCTAssertEqual(try DynamicMessage(self.descriptor(), serializedBytes: bytes).serializedBytes(), bytes)
    XCTAssertEqual(try CLegacies(serializedBytes: ByteBuffer()).n_many, 0)
  }

  func testEncoding() throws {
    let fields: [(String, FieldValue)] = [
      ("number", 0), ("text", ""), ("some_bytes", .bytes(ByteBuffer())),
    ]
    var message = DynamicMessage(try self.descriptor())
    for (name, value) in fields {
      XCTAssertFalse(try message.has(name))
      expectError(.internalError, "cannot encode: connect.kinds.v1.Legacy.\(name): required, but not set") {
        try message.serializedBytes()
      }
      expectError(.internalError, "Legacy.\(name): required") {
        try message.serializedBytes(deterministic: true)
      }
      try message.set(name, to: value)
      XCTAssertTrue(try message.has(name))
    }
    expectError(.internalError, "Legacy.inner: required, but not set") { try message.serializedBytes() }
    try message.update("inner") { _ in }
    expectError(.internalError, "Inner.id: required, but not set") { try message.serializedBytes() }
    try message.update("inner") { try $0.set("id", to: 0) }
    XCTAssertEqual(try message.serializedBytes(), try self.whole.buffer)
    try message.clear("number")
    XCTAssertFalse(try message.has("number"))
    expectError(.internalError, "Legacy.number: required, but not set") { try message.serializedBytes() }
  }

  /// C has a null pointer for a string or a message that is not set, and nothing for numbers and bytes.
  func testEncodingStructs() throws {
    var message = CLegacy()
    expectError(.internalError, "Legacy.text: required, but not set") { try message.serializedBytes() }
    XCTAssertFalse(try message.dynamic().has("text"))
    try message.update { fields, arena in fields.text = try arena.string("") }
    expectError(.internalError, "Legacy.inner: required, but not set") { try message.serializedBytes() }
    expectError(.internalError, "Legacy.inner: required") { try message.serializedBytes(deterministic: true) }
    expectError(.internalError, "Legacy.inner: required") { try message.copyForC() }
    message.update { fields, arena in fields.inner = arena.message() }
    XCTAssertEqual(try message.serializedBytes(), try self.whole.buffer)
    XCTAssertTrue(try message.dynamic().has("number"))
  }

  /// Each is put together before it is looked at; a struct cannot tell then which numbers it got.
  func testMessagesSentInPieces() throws {
    let first = Legacy.with {
      $0.number = 1
      $0.text = "a"
    }
    let second = Legacy.with {
      $0.someBytes = Data([1])
      $0.inner.id = 2
    }
    var bytes = try self.partialBytes(Legacies.with { $0.one = first })
    bytes.writeImmutableBuffer(try self.partialBytes(Legacies.with { $0.one = second }))
    let expected = try Legacies(bytes)
    XCTAssertEqual(expected.one.number, 1)
    let message = try DynamicMessage(self.descriptor("Legacies"), serializedBytes: bytes)
    XCTAssertEqual(try Legacies(message.serializedBytes()), expected)
    expectError(.internalError, "Legacy.some_bytes: required, but not set") {
      try CLegacies(serializedBytes: bytes)
    }
    let pieces = Legacies.with { $0.one = self.whole }
    var twice = try pieces.buffer
    twice.writeImmutableBuffer(try pieces.buffer)
    XCTAssertEqual(try Legacies(CLegacies(serializedBytes: twice).serializedBytes()), pieces)
  }

  func testEquality() throws {
    let empty = DynamicMessage(try self.descriptor())
    XCTAssertEqual(empty, DynamicMessage(try self.descriptor()))
    XCTAssertEqual(CLegacy(), CLegacy())
    var other = empty
    try other.set("text", to: "a")
    XCTAssertNotEqual(empty, other)
    XCTAssertEqual(Set([empty, other, DynamicMessage(try self.descriptor())]).count, 2)
  }

  // MARK: JSON

  func testJSON() throws {
    for (name, message) in self.incomplete {
      let json = try message.jsonBuffer
      XCTAssertEqual(try Legacy(jsonUTF8Data: json.data), message, name)
      let dynamic = try DynamicMessage(self.descriptor(), jsonBytes: json)
      XCTAssertEqual(try Legacy(jsonUTF8Data: dynamic.jsonBytes().data), message, name)
      expectError(.internalError, "\(name): required, but not set") { try dynamic.serializedBytes() }
      let structure = try CLegacy(jsonBytes: json)
      if ["Legacy.text", "Legacy.inner"].contains(name) {
        XCTAssertFalse(try structure.jsonBytes().text.contains(name == "Legacy.text" ? "text" : "inner"))
        expectError(.internalError, "\(name): required, but not set") { try structure.serializedBytes() }
      } else {
        XCTAssertEqual(try Legacy(structure.serializedBytes()), self.whole, name)
      }
    }
    let empty = ByteBuffer(string: "{}")
    XCTAssertEqual(try DynamicMessage(self.descriptor(), jsonBytes: empty).jsonBytes().text, "{}")
    XCTAssertEqual(try CLegacy(jsonBytes: empty).jsonBytes().text, #"{"number":0,"someBytes":""}"#)
  }

  /// As in SwiftProtobuf, nobody asks for required fields in the bytes of `google.protobuf.Any`, which are only passed
  /// on. From JSON such bytes have to be made, and what is missing cannot be left out.
  func testAny() throws {
    func field(_ name: String, _ number: Int32, _ type: Google_Protobuf_FieldDescriptorProto.TypeEnum)
      -> Google_Protobuf_FieldDescriptorProto
    {
      .with {
        $0.name = name
        $0.number = number
        $0.type = type
        $0.label = .optional
      }
    }
    let any = Google_Protobuf_FileDescriptorProto.with {
      $0.name = "any.proto"
      $0.package = "google.protobuf"
      $0.messageType = [
        .with {
          $0.name = "Any"
          $0.field = [field("type_url", 1, .string), field("value", 2, .bytes)]
        },
        .with {
          $0.name = "M"
          $0.field = [field("id", 1, .int32)]
          $0.field[0].label = .required
        },
      ]
    }
    let set = Google_Protobuf_FileDescriptorSet.with { $0.file = [any] }
    let descriptor = try DescriptorPool(serializedFileDescriptorSet: set.buffer).message(
      "google.protobuf.Any"
    )
    let json = #"{"@type":"t/google.protobuf.M"}"#
    expectError(.internalError, "google.protobuf.M.id: required, but not set") {
      try DynamicMessage(descriptor, jsonBytes: ByteBuffer(string: json))
    }
    let whole = #"{"@type":"t/google.protobuf.M","id":5}"#
    let message = try DynamicMessage(descriptor, jsonBytes: ByteBuffer(string: whole))
    XCTAssertEqual(try message.value(of: "type_url"), "t/google.protobuf.M")
    XCTAssertEqual(try message.jsonBytes().text, whole)
    var bare = DynamicMessage(descriptor)
    try bare.set("type_url", to: "t/google.protobuf.M")
    XCTAssertEqual(try bare.jsonBytes().text, json)
  }
}
