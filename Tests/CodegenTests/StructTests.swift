import Foundation
import SwiftProtobuf
import SwiftProtobufPluginLibrary
import XCTest

@testable import ConnectCodegen

/// What makes protoc-c's structs messages. That the names are protoc-c's is shown by the targets that compile them.
final class StructTests: XCTestCase {
  private static let options = "MessageFamily=ProtobufC,StructModuleName=CStructs"

  private func generate(_ text: String, _ options: String = options) throws -> GeneratorResponse {
    Plugin.respond(to: try ProtoFiles.request(texts: ["a/b-c.proto": text], options), StubGenerator())
  }

  func testNestedMessagesAndMapEntriesComeBeforeWhatTheyAreIn() throws {
    let response = try self.generate(
      """
      syntax = "proto3";
      package acme;
      message Outer { message Inner {} map<string, Inner> by_name = 1; }
      """
    )
    XCTAssertEqual(response.error, "")
    let lines = (response.file.first?.content ?? "").split(separator: "\n")
    XCTAssertEqual(
      lines.filter { $0.hasPrefix("extension") },
      [
        "extension CStructs.Acme__Outer__Inner: ConnectProtobufC.CMessageStruct {",
        "extension CStructs.Acme__Outer__ByNameEntry: ConnectProtobufC.CMessageStruct {",
        "extension CStructs.Acme__Outer: ConnectProtobufC.CMessageStruct {",
      ]
    )
    XCTAssertEqual(
      lines.filter { $0.hasPrefix("import") },
      ["import CStructs", "import ConnectProtobufC"]
    )
  }

  /// The set is whole: with imports, those of imports too, and in an order in which each comes after what it imports.
  func testTheDescriptorSetHasAllImports() throws {
    let request = try ProtoFiles.request(
      texts: [
        "a.proto": "syntax = \"proto3\"; import \"b.proto\"; message A { B b = 1; } // about A",
        "b.proto": "syntax = \"proto3\"; import \"c.proto\"; message B { C c = 1; }",
        "c.proto": "syntax = \"proto3\"; message C {}",
      ],
      Self.options
    )
    let files = Plugin.respond(to: request, StubGenerator()).file
    let content = try XCTUnwrap(files.first { $0.name == "a.connect.swift" }).content
    let base64 = try XCTUnwrap(content.firstMatch(of: /base64: "([^"]*)"/)).1
    let bytes = try XCTUnwrap(Data(base64Encoded: String(base64)))
    let set = try Google_Protobuf_FileDescriptorSet(serializedBytes: bytes)
    XCTAssertEqual(set.file.map(\.name), ["c.proto", "b.proto", "a.proto"])
    XCTAssertTrue(set.file.allSatisfy { !$0.hasSourceCodeInfo })
    XCTAssertEqual(set.file.last?.messageType.first?.field.first?.jsonName, "b")
  }

  func testTheConstantIsNamedAfterTheFile() throws {
    let text = try self.generate("syntax = \"proto3\"; message M {}").file.first?.content
    XCTAssertTrue(text?.contains("\nlet aBCDescriptors = ConnectProtobufC.DescriptorSource(") ?? false)
  }

  func testTwoFilesWhoseConstantsHaveOneName() throws {
    let request = try ProtoFiles.request(
      texts: [
        "a_b.proto": "syntax = \"proto3\"; message M {}", "a/b.proto": "syntax = \"proto3\"; message N {}",
      ],
      Self.options
    )
    XCTAssertEqual(
      Plugin.respond(to: request, StubGenerator()).error,
      "a/b.proto: gives 'aBDescriptors' as 'a_b.proto' does: rename one of the two"
    )
  }

  func testWithoutTheModuleThereAreStubsOnly() throws {
    let text = "syntax = \"proto3\"; message M {}"
    XCTAssertEqual(try self.generate(text, "MessageFamily=ProtobufC").file, [])
  }

  // MARK: Options of protoc-c

  private func options(
    _ text: String,
    file: [UInt8] = [],
    message: [UInt8] = [],
    field: [UInt8] = []
  ) throws -> GeneratorResponse {
    var request = try ProtoFiles.request(texts: ["a.proto": text], Self.options)
    func extended<M: SwiftProtobuf.Message>(_ options: inout M, by bytes: [UInt8]) throws {
      // The extension 1019, which is a message.
      let tag: [UInt8] = [0xda, 0x3f, UInt8(bytes.count)]
      try options.merge(serializedBytes: tag + bytes)
    }
    if !file.isEmpty { try extended(&request.protoFile[0].options, by: file) }
    if !message.isEmpty { try extended(&request.protoFile[0].messageType[0].options, by: message) }
    if !field.isEmpty { try extended(&request.protoFile[0].messageType[0].field[0].options, by: field) }
    return Plugin.respond(to: request, StubGenerator())
  }

  func testPackageOfC() throws {
    let response = try self.options(
      "syntax = \"proto3\"; package a.b; message M {}",
      file: [0x32, 5] + Array("c_d.E".utf8)
    )
    let text = response.file.first?.content ?? ""
    XCTAssertTrue(text.contains("extension CStructs.CD__E__M: "), text)
    XCTAssertTrue(text.contains("CStructs.c_d__e__m__init,"), text)
  }

  func testFilesThatProtocCPassesOver() throws {
    let response = try self.options("syntax = \"proto3\"; message M {}", file: [0x08, 1])
    XCTAssertEqual(response.error, "")
    XCTAssertEqual(response.file, [])
  }

  func testStructsWithoutInitializers() throws {
    let text = "syntax = \"proto3\";\nmessage M { message N {} }"
    let problem = "has no function that initializes it: gen_init_helpers is false"
    XCTAssertEqual(try self.options(text, file: [0x18, 0]).error, "a.proto:2: M.N \(problem)")
    XCTAssertEqual(try self.options(text, message: [0x10, 0]).error, "a.proto:2: M.N \(problem)")
    XCTAssertEqual(try self.options(text, file: [0x18, 0], message: [0x10, 1]).error, "")
  }

  /// With these, the descriptors of C and the proto file would not be of one mind about a field.
  func testFieldsThatTheDescriptorsOfCHide() throws {
    let text = "syntax = \"proto3\";\nmessage M {\n string s = 1; }"
    let problem = "M.s is a string with string_as_bytes, of which C knows bytes only"
    XCTAssertEqual(try self.options(text, field: [0x08, 1]).error, "a.proto:3: \(problem)")
    XCTAssertEqual(try self.options(text, field: [0x08, 0]).error, "")
    let bytes = "syntax = \"proto3\";\nmessage M { bytes s = 1; }"
    XCTAssertEqual(try self.options(bytes, field: [0x08, 1]).error, "")
    XCTAssertEqual(
      try self.options(text, file: [0x28, 1]).error,
      "a.proto: use_oneof_field_name hides the names of fields"
    )
  }
}
