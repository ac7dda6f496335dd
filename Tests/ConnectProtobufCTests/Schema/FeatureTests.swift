internal import Connect
internal import ConnectProtobufC
internal import Foundation
internal import NIOCore
internal import SwiftProtobuf
import XCTest

private typealias File = Google_Protobuf_FileDescriptorProto
private typealias Field = Google_Protobuf_FieldDescriptorProto

/// What proto2, proto3 and editions decide of run-time descriptors.
final class FeatureTests: XCTestCase {
  private func pool(_ file: File) throws -> DescriptorPool {
    let set = Google_Protobuf_FileDescriptorSet.with { $0.file = [file] }
    return try DescriptorPool(
      serializedFileDescriptorSet: ByteBuffer(bytes: set.serializedBytes() as [UInt8])
    )
  }

  private func field(
    _ name: String,
    _ number: Int32,
    _ type: Field.TypeEnum,
    of typeName: String = "",
    _ change: (inout Field) -> Void = { _ in }
  ) -> Field {
    var field = Field()
    field.name = name
    field.number = number
    field.type = type
    field.label = .optional
    if !typeName.isEmpty { field.typeName = typeName }
    change(&field)
    return field
  }

  private func message(_ name: String, _ fields: Field...) -> Google_Protobuf_DescriptorProto {
    .with {
      $0.name = name
      $0.field = fields
    }
  }

  private let shade = Google_Protobuf_EnumDescriptorProto.with {
    $0.name = "Shade"
    $0.value = [("DARK", 3), ("LIGHT", 1)].map { (name: String, number: Int32) in
      .with {
        $0.name = name
        $0.number = number
      }
    }
  }

  // MARK: Groups

  func testOnlyWhatHasGroupsCannotBeUsed() throws {
    let file = File.with {
      $0.name = "a.proto"
      $0.package = "a"
      $0.syntax = "proto2"
      $0.messageType = [
        self.message("Plain", self.field("number", 1, .int32)),
        self.message("Grouped", self.field("group", 1, .group, of: ".a.Plain")),
        self.message("Outer", self.field("inner", 1, .message, of: ".a.Grouped")),
      ]
      $0.service = [
        .with {
          $0.name = "S"
          $0.method = [("Good", "Plain"), ("Bad", "Outer")].map { name, output in
            .with {
              $0.name = name
              $0.inputType = ".a.Plain"
              $0.outputType = ".a.\(output)"
            }
          }
        }
      ]
    }
    let pool = try self.pool(file)
    XCTAssertEqual(pool.messageNames, ["a.Plain"])
    XCTAssertEqual(pool.services.first?.methods.map(\.path), ["/a.S/Good"])
    let reason = "a.Grouped.group: libprotobuf-c has no groups"
    expectError(.invalidArgument, reason) { try pool.message("a.Outer") }
    expectError(.invalidArgument, reason) { try pool.method("/a.S/Bad") }
  }

  // MARK: Enums

  func testAnEnumsFirstValueIsItsDefault() throws {
    let file = File.with {
      $0.name = "a.proto"
      $0.package = "a"
      $0.syntax = "proto2"
      $0.enumType = [self.shade]
      $0.messageType = [
        .with {
          $0.name = "M"
          $0.oneofDecl = [.with { $0.name = "choice" }]
          $0.field = [
            self.field("shade", 1, .enum, of: ".a.Shade"),
            self.field("other", 2, .enum, of: ".a.Shade") { $0.defaultValue = "LIGHT" },
            self.field("member", 3, .enum, of: ".a.Shade") { $0.oneofIndex = 0 },
          ]
        }
      ]
    }
    let message = DynamicMessage(try self.pool(file).message("a.M"))
    XCTAssertEqual(try message.value(of: "shade"), FieldValue.enumeration(3))
    XCTAssertEqual(try message.enumName(of: "shade"), "DARK")
    XCTAssertEqual(try message.value(of: "other"), FieldValue.enumeration(1))
    XCTAssertEqual(try message.value(of: "member"), FieldValue.enumeration(3))
    XCTAssertFalse(try message.has("shade"))
    XCTAssertEqual(try message.serializedBytes().readableBytes, 0)
  }

  // MARK: Editions

  func testFeaturesOfEditions() throws {
    let file = File.with {
      $0.name = "a.proto"
      $0.package = "a"
      $0.syntax = "editions"
      $0.edition = .edition2023
      $0.messageType = [
        self.message(
          "M",
          self.field("explicit", 1, .int32),
          self.field("implicit", 2, .int32) { $0.options.features.fieldPresence = .implicit },
          self.field("required", 3, .int32) { $0.options.features.fieldPresence = .legacyRequired },
          self.field("packed", 4, .int32) { $0.label = .repeated },
          self.field("expanded", 5, .int32) {
            $0.label = .repeated
            $0.options.features.repeatedFieldEncoding = .expanded
          }
        ),
        .with {
          $0.name = "Implicit"
          $0.options.features.fieldPresence = .implicit
          $0.field = [self.field("a", 1, .int32)]
        },
        self.message(
          "Delimited",
          self.field("m", 1, .message, of: ".a.M") { $0.options.features.messageEncoding = .delimited }
        ),
      ]
    }
    let pool = try self.pool(file)
    var message = DynamicMessage(try pool.message("a.M"))
    for field in ["explicit", "implicit", "required"] { try message.set(field, to: 0) }
    try message.set("packed", to: [1, 2])
    try message.set("expanded", to: [1, 2])
    XCTAssertTrue(try message.has("explicit"))
    XCTAssertFalse(try message.has("implicit"))
    let bytes: [UInt8] = [0x08, 0, 0x18, 0, 0x22, 2, 1, 2, 0x28, 1, 0x28, 2]
    XCTAssertEqual(try message.serializedBytes(), ByteBuffer(bytes: bytes))
    expectError(.internalError, "a.M.required: required, but not set") {
      try DynamicMessage(message.descriptor, serializedBytes: ByteBuffer(bytes: [0x08, 1]))
    }
    var implicit = DynamicMessage(try pool.message("a.Implicit"))
    try implicit.set("a", to: 0)
    XCTAssertFalse(try implicit.has("a"))
    expectError(.invalidArgument, "a.Delimited.m: libprotobuf-c has no groups") {
      try pool.message("a.Delimited")
    }
  }

  // MARK: Oneofs

  func testNamesOfOneofs() throws {
    let descriptor = try kindsDescriptor()
    XCTAssertEqual(descriptor.oneofNames, ["choice"])
    var message = DynamicMessage(descriptor)
    XCTAssertNil(try message.member(ofOneof: "choice"))
    try message.set("one_int32", to: 0)
    XCTAssertEqual(try message.member(ofOneof: "choice"), "one_int32")
    try message.set("one_string", to: "")
    XCTAssertEqual(try message.member(ofOneof: "choice"), "one_string")
    expectError(.invalidArgument, "has no oneof other") { try message.member(ofOneof: "other") }
    // The oneofs that stand for `optional` are not the file's.
    XCTAssertEqual(try kindsDescriptor("Optionals").oneofNames, [])
    XCTAssertEqual(try CKinds().dynamic().descriptor.oneofNames, ["choice"])
  }
}
