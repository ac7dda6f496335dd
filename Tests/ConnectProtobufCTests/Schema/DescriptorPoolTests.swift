internal import CProtobufC
internal import Connect
internal import Foundation
internal import NIOCore
internal import ProtobufCExamples
internal import ProtobufCStubs
internal import SwiftProtobuf
import XCTest

@testable import ConnectProtobufC

private typealias FileSet = Google_Protobuf_FileDescriptorSet
private typealias File = Google_Protobuf_FileDescriptorProto
private typealias Message = Google_Protobuf_DescriptorProto
private typealias Field = Google_Protobuf_FieldDescriptorProto

/// Types made from descriptor sets.
final class DescriptorPoolTests: XCTestCase {
  private func pool(_ files: File...) throws -> DescriptorPool {
    try DescriptorPool(serializedFileDescriptorSet: FileSet.with { $0.file = files }.buffer)
  }

  private func field(
    _ name: String,
    _ number: Int32,
    _ type: Field.TypeEnum,
    _ more: (inout Field) -> Void = { _ in }
  )
    -> Field
  {
    .with {
      $0.name = name
      $0.number = number
      $0.type = type
      $0.label = .optional
      more(&$0)
    }
  }

  private func file(_ syntax: String = "proto3", _ fields: Field...) -> File {
    .with {
      $0.name = "a.proto"
      $0.package = "a"
      $0.syntax = syntax
      $0.messageType = [
        .with {
          $0.name = "M"
          $0.field = fields
        }
      ]
    }
  }

  func testServicesAndMethods() throws {
    let pool = try connectTestV1TestDescriptors.pool()
    XCTAssertEqual(pool.services.map(\.name), ["connect.test.v1.TestService"])
    XCTAssertTrue(pool.messageNames.contains("connect.test.v1.Payload.CountsEntry"))
    let converse = try pool.method("/connect.test.v1.TestService/Converse")
    XCTAssertEqual(converse.info.streamType, .bidirectionalStream)
    XCTAssertEqual(converse.input.name, "connect.test.v1.ConverseRequest")
    XCTAssertEqual(converse.output.fieldNames, ["index", "payload", "seen", "padding"])
    let types = pool.services[0].methods.map(\.info.streamType)
    XCTAssertEqual(
      types,
      [.unary, .serverStream, .clientStream, .bidirectionalStream, .unary, .serverStream, .unary]
    )
    let lookup = try pool.method("/connect.test.v1.TestService/Lookup")
    XCTAssertEqual(lookup.info.idempotencyLevel, .noSideEffects)
    expectError(.invalidArgument, "no method /a/B") { try pool.method("/a/B") }
    expectError(.invalidArgument, "no message a.B") { try pool.message("a.B") }
  }

  /// What protoc-c wrote and what was made at run time agree in all that libprotobuf-c reads.
  func testDescriptorsAreThoseOfProtocC() throws {
    let made = try kindsDescriptor().graph
    let expected = SchemaGraph([CKinds.descriptorOfStruct], metadata: nil)
    XCTAssertFalse(expected.messages.isEmpty)
    for (name, expected) in expected.messages {
      let made = try XCTUnwrap(made.messages[name])
      XCTAssertEqual(made.descriptor.pointee.n_field_ranges, expected.descriptor.pointee.n_field_ranges, name)
      XCTAssertEqual(made.fields.map(\.name), expected.fields.map(\.name))
      for (made, expected) in zip(made.fields, expected.fields) {
        XCTAssertEqual(made.number, expected.number, "\(name).\(made.name)")
        XCTAssertEqual(made.kind, expected.kind, "\(name).\(made.name)")
        XCTAssertEqual(made.typeName, expected.typeName, "\(name).\(made.name)")
        XCTAssertEqual(
          made.descriptor.pointee.flags & PROTOBUF_C_FIELD_FLAG_PACKED.rawValue,
          expected.descriptor.pointee.flags & PROTOBUF_C_FIELD_FLAG_PACKED.rawValue,
          "\(name).\(made.name)"
        )
        let found = name.withCString { _ in
          made.name.withCString {
            protobuf_c_message_descriptor_get_field_by_name(self.descriptor(made, in: name), $0)
          }
        }
        XCTAssertEqual(found, made.descriptor)
      }
    }
  }

  private func descriptor(_ field: FieldSchema, in message: String) -> MessageDescriptorPointer? {
    try? kindsDescriptor().graph.messages[message]?.descriptor
  }

  func testMessagesOutliveTheirPool() throws {
    func message() throws -> DynamicMessage {
      var message = try DynamicMessage(
        self.pool(self.file("proto3", self.field("s", 1, .string))).message("a.M")
      )
      try message.set("s", to: "text")
      return message
    }
    let kept = try message()
    XCTAssertEqual(try kept.value(of: "s"), "text")
    XCTAssertEqual(try kept.jsonBytes().text, #"{"s":"text"}"#)
    let other = try message()
    XCTAssertNotEqual(kept, other, "types of two pools are not the same")
    let inner = Field.with {
      $0.name = "inner"
      $0.number = 1
      $0.type = .message
      $0.label = .optional
      $0.typeName = ".a.M"
    }
    let descriptor = try self.pool(self.file("proto3", inner)).message("a.M")
    var outer = DynamicMessage(descriptor)
    expectError(.invalidArgument, "a a.M of another descriptor pool") {
      try outer.set("inner", to: .message(kept))
    }
  }

  func testUnusableSets() throws {
    let missing = File.with {
      $0.name = "a.proto"
      $0.dependency = ["b.proto"]
    }
    expectError(.invalidArgument, "a.proto imports b.proto") { try self.pool(missing) }
    expectError(.invalidArgument, "lacks the type .b.N") {
      try self.pool(self.file("proto3", self.field("f", 1, .message) { $0.typeName = ".b.N" }))
    }
    expectError(.invalidArgument, "lacks the type .b.E") {
      try self.pool(self.file("proto3", self.field("f", 1, .enum) { $0.typeName = ".b.E" }))
    }
    expectError(.invalidArgument, "a.M.g: libprotobuf-c has no groups") {
      try self.pool(self.file("proto2", self.field("g", 1, .group))).message("a.M")
    }
    expectError(.invalidArgument, "the syntax 'proto9'") { try self.pool(self.file("proto9")) }
    for number: Int32 in [0, -1, 536_870_912] {
      expectError(.invalidArgument, "the field number \(number)") {
        try self.pool(self.file("proto3", self.field("f", number, .bool)))
      }
    }
    expectError(.invalidArgument, "the field number 1") {
      try self.pool(self.file("proto3", self.field("f", 1, .bool), self.field("g", 1, .bool)))
    }
    expectError(.invalidArgument, "a.M.f: a name") {
      try self.pool(self.file("proto3", self.field("f", 1, .bool), self.field("f", 2, .bool)))
    }
    for label in [Field.Label.repeated, .required] {
      var file = self.file(
        "proto2",
        self.field("f", 1, .int32) {
          $0.label = label
          $0.oneofIndex = 0
        }
      )
      file.messageType[0].oneofDecl = [.with { $0.name = "o" }]
      expectError(.invalidArgument, "a.M.f: a member of a oneof") { try self.pool(file) }
    }
    expectError(.invalidArgument, "a.M is there twice") { try self.pool(self.file(), self.file()) }
    expectError(.invalidArgument, "is no name") {
      try self.pool(.with { $0.messageType = [.with { $0.name = "a\0b" }] })
    }
    expectError(.invalidArgument, "no file descriptor set") {
      try DescriptorPool(serializedFileDescriptorSet: ByteBuffer(bytes: [0xff]))
    }
    let method = File.with {
      $0.service = [
        .with {
          $0.name = "S"
          $0.method = [.with { $0.inputType = ".a.N" }]
        }
      ]
    }
    expectError(.invalidArgument, "lacks the type .a.N") { try self.pool(method) }
  }

  func testProto2() throws {
    let descriptor = try self.pool(
      self.file(
        "proto2",
        self.field("required", 1, .int32) { $0.label = .required },
        self.field("text", 2, .string) { $0.defaultValue = "default" },
        self.field("number", 3, .sint64) { $0.defaultValue = "-5" },
        self.field("flag", 4, .bool) { $0.defaultValue = "true" },
        self.field("bytes", 5, .bytes) { $0.defaultValue = #"a\001\n\\"# },
        self.field("ratio", 6, .double) { $0.defaultValue = "-inf" },
        self.field("list", 7, .int32) { $0.label = .repeated }
      )
    ).message("a.M")
    expectError(.internalError, "a.M.required: required, but not set") {
      try DynamicMessage(descriptor, serializedBytes: ByteBuffer())
    }
    var message = try DynamicMessage(descriptor, serializedBytes: ByteBuffer(bytes: [8, 1]))
    XCTAssertEqual(try message.value(of: "required"), 1)
    XCTAssertEqual(try message.value(of: "text"), "default")
    XCTAssertEqual(try message.value(of: "number"), -5)
    XCTAssertEqual(try message.value(of: "flag"), true)
    XCTAssertEqual(try message.value(of: "bytes"), .bytes(ByteBuffer(bytes: [97, 1, 10, 92])))
    XCTAssertEqual(try message.value(of: "ratio"), .double(-.infinity))
    XCTAssertFalse(try message.has("text"))
    try message.set("text", to: "")
    XCTAssertTrue(try message.has("text"))
    XCTAssertEqual(try message.serializedBytes(), ByteBuffer(bytes: [8, 1, 18, 0]))
    try message.clear("text")
    try message.set("number", to: 0)
    try message.clear("number")
    XCTAssertEqual(try message.value(of: "text"), "default")
    XCTAssertEqual(try message.value(of: "number"), -5)
    try message.set("list", to: [1, 2])
    XCTAssertEqual(try message.serializedBytes(), ByteBuffer(bytes: [8, 1, 56, 1, 56, 2]))
    for (type, text) in [(Field.TypeEnum.int32, "x"), (.uint64, "-1"), (.enum, "NONE")] {
      expectError(.invalidArgument, "the default value '\(text)'") {
        var file = self.file(
          "proto2",
          self.field("f", 1, type) {
            $0.defaultValue = text
            if type == .enum { $0.typeName = ".a.E" }
          }
        )
        file.enumType = [.with { $0.name = "E" }]
        return try self.pool(file)
      }
    }
  }

  /// Members share their memory: a default value of one must not be taken for a message of another.
  func testDefaultValuesInAOneof() throws {
    let descriptor = try self.pool(
      .with {
        $0.package = "a"
        $0.syntax = "proto2"
        $0.messageType = [
          .with {
            $0.name = "M"
            $0.oneofDecl = [.with { $0.name = "choice" }]
            $0.field = [
              self.field("number", 1, .int64) {
                $0.defaultValue = "4660"
                $0.oneofIndex = 0
              },
              self.field("inner", 2, .message) {
                $0.typeName = ".a.M"
                $0.oneofIndex = 0
              },
            ]
          }
        ]
      }
    ).message("a.M")
    let message = try DynamicMessage(descriptor, serializedBytes: ByteBuffer(bytes: [18, 2, 8, 7]))
    guard case .message(let inner) = try message.value(of: "inner") else { return XCTFail("no message") }
    XCTAssertEqual(try inner.value(of: "number"), 7)
    XCTAssertFalse(try message.has("number"))
  }

  /// What says that it is a map's entry, but has a message for a key, is an ordinary message.
  func testEntriesThatAreNone() throws {
    var file = self.file(
      "proto3",
      self.field("entries", 1, .message) {
        $0.label = .repeated
        $0.typeName = ".a.M.Entry"
      }
    )
    file.messageType[0].nestedType = [
      .with {
        $0.name = "Entry"
        $0.options.mapEntry = true
        $0.field = [self.field("key", 1, .message) { $0.typeName = ".a.M" }, self.field("value", 2, .bool)]
      }
    ]
    let descriptor = try self.pool(file).message("a.M")
    let json = #"{"entries":[{"key":{},"value":true},{"key":{}}]}"#
    let message = try DynamicMessage(descriptor, jsonBytes: ByteBuffer(string: json))
    XCTAssertEqual(try message.jsonBytes().text, json)
    XCTAssertEqual(try message.serializedBytes(deterministic: true), try message.serializedBytes())
    guard case .list(let entries) = try message.value(of: "entries") else { return XCTFail("no list") }
    XCTAssertEqual(entries.count, 2)
  }

  func testManyFieldsWithGaps() throws {
    let fields = (1...200).map { self.field("f\($0)", Int32($0 * 3 - $0 % 2), .uint32) }
    var file = self.file()
    file.messageType[0].field = fields.reversed()
    let descriptor = try self.pool(file).message("a.M")
    var message = DynamicMessage(descriptor)
    for index in 1...200 { try message.set("f\(index)", to: .uint(UInt64(index))) }
    let decoded = try DynamicMessage(descriptor, serializedBytes: message.serializedBytes())
    for (index, field) in fields.enumerated() {
      XCTAssertEqual(try decoded.value(of: Int(field.number)), .uint(UInt64(index + 1)))
    }
    XCTAssertEqual(try DynamicMessage(descriptor, jsonBytes: decoded.jsonBytes()), message)
  }

  func testTypesThatOnlyBearAWellKnownName() throws {
    let descriptor = try self.pool(
      .with {
        $0.package = "google.protobuf"
        $0.syntax = "proto3"
        $0.messageType = [
          .with {
            $0.name = "Timestamp"
            $0.field = [self.field("seconds", 1, .string)]
          }
        ]
      }
    ).message("google.protobuf.Timestamp")
    let message = try DynamicMessage(descriptor, jsonBytes: ByteBuffer(string: #"{"seconds":"x"}"#))
    XCTAssertEqual(try message.jsonBytes().text, #"{"seconds":"x"}"#)
  }
}

extension CMessage {
  fileprivate static var descriptorOfStruct: MessageDescriptorPointer { Struct.messageType.descriptor }
}
