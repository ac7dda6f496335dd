internal import Connect
internal import ConnectProtobufC
internal import Foundation
internal import NIOCore
internal import SwiftProtobuf
import XCTest

@testable import ConnectReflection

/// Sets of proto files: names, sources and JSON.
final class ProtoFileSetTests: XCTestCase {
  private func file(_ name: String, _ change: (inout File) -> Void = { _ in }) -> File {
    var file = File()
    file.name = name
    file.syntax = "proto3"
    change(&file)
    return file
  }

  // MARK: Names

  func testServices() async throws {
    let set = try await ProtoFileSet.test()
    XCTAssertEqual(set.serviceNames, ["connect.test.v1.TestService"])
    XCTAssertEqual(set.fileNames.last, "connect/test/v1/test.proto")
    XCTAssertEqual(set.fileNames.count, 4)
    XCTAssertEqual(try set.descriptorPool().services.map(\.name), set.serviceNames)
  }

  func testSourceOfSymbols() async throws {
    let set = try await ProtoFileSet.compile(["canonical.proto"], importPaths: [Folders.own])
    XCTAssertEqual(
      try set.source(of: "acme.v1.Users.Get"),
      "// Of a method.\nrpc Get(GetRequest) returns (User);\n"
    )
    XCTAssertEqual(try set.source(of: "/acme.v1.Users/Get"), try set.source(of: "acme.v1.Users.Get"))
    XCTAssertEqual(try set.source(of: ".acme.v1.GetRequest"), "message GetRequest {\n  string name = 1;\n}\n")
    XCTAssertEqual(try set.source(of: "acme.v1.User.age"), "optional int32 age = 2; // In years.\n")
    XCTAssertEqual(
      try set.source(of: "acme.v1.User.addresses"),
      "map<string, Address> addresses = 4;\n// Several lines\n// behind a field.\n"
    )
    XCTAssertEqual(
      try set.source(of: "acme.v1.User.Kind.KIND_ADMIN"),
      "// Of a value.\nKIND_ADMIN = 1 [deprecated = true]; // Behind a value.\n"
    )
    XCTAssertEqual(
      try set.source(of: "acme.v1.sensitive"),
      """
      // Of the extensions.
      extend google.protobuf.FieldOptions {
        // Of an extension.
        bool sensitive = 50001;
      }

      """
    )
    XCTAssertTrue(try set.source(of: "acme.v1.User.Kind").hasPrefix("enum Kind {\n  KIND_UNKNOWN = 0;\n"))
    XCTAssertTrue(try set.source(of: "acme.v1.Users").contains("service Users { // Behind the brace.\n"))
    XCTAssertTrue(try set.source(of: "acme.v1").hasPrefix("// canonical.proto\n\n// A file that"))
    XCTAssertEqual(try set.source(of: "canonical.proto"), try set.source(ofFile: "canonical.proto"))
  }

  func testUnknownSymbols() async throws {
    let set = try await ProtoFileSet.test()
    await expectError(.notFound, "did you mean connect.test.v1.TestService?") {
      try set.source(of: "connect.test.v1.TestServices")
    }
    await expectError(.notFound, "did you mean connect.test.v1.TestService.Echo?") {
      try set.json(of: "connect.test.v1.TestService/Eco")
    }
    await expectError(.notFound, "connect.test.v1.TestService?") { try set.source(of: "TestService") }
    await expectError(.notFound, "did you mean connect/test/v1/test.proto?") {
      try set.source(ofFile: "connect/test/v1/tests.proto")
    }
    await expectError(.notFound, "no x in the proto files") { try set.source(of: "x") }
    await expectError(.notFound, "no  in the proto files") { try set.source(of: "") }
  }

  func testJSON() async throws {
    let set = try await ProtoFileSet.compile(["canonical.proto"], importPaths: [Folders.own])
    XCTAssertEqual(
      try set.json(of: "acme.v1.GetRequest"),
      """
      {
        "name": "GetRequest",
        "field": [
          {
            "name": "name",
            "number": 1,
            "label": "LABEL_OPTIONAL",
            "type": "TYPE_STRING",
            "jsonName": "name"
          }
        ]
      }
      """
    )
    for symbol in [
      "acme.v1.Users/Get", "acme.v1.User", "acme.v1.User.Kind", "acme.v1.sensitive", "acme.v1",
      "canonical.proto",
    ] {
      let json = try set.json(of: symbol)
      XCTAssertNoThrow(try JSONSerialization.jsonObject(with: Data(json.utf8)), symbol)
    }
    XCTAssertEqual(
      JSONValue.indented(#"{"a":[],"b":{},"c":"{,\"\\"}"#),
      "{\n  \"a\": [],\n  \"b\": {},\n  \"c\": \"{,\\\"\\\\\"\n}"
    )
  }

  func testSerialized() async throws {
    let set = try await ProtoFileSet.test()
    let again = try ProtoFileSet(serializedFileDescriptorSet: try set.serialized())
    XCTAssertEqual(again.files, set.files)
  }

  // MARK: Sets that are wrong

  func testNoSet() async throws {
    await expectError(.invalidArgument, "no file descriptor set") {
      try ProtoFileSet(serializedFileDescriptorSet: ByteBuffer(string: "what is this?"))
    }
    await expectError(.invalidArgument, "no files") {
      try ProtoFileSet(serializedFileDescriptorSet: ByteBuffer())
    }
  }

  func testAddedFiles() throws {
    let first = try ProtoFileSet([self.file("a.proto"), self.file("b.proto") { $0.package = "b" }])
    let second = try ProtoFileSet([
      self.file("b.proto") { $0.package = "other" },
      self.file("c.proto") { $0.dependency = ["b.proto"] },
    ])
    let both = try first.adding(second)
    XCTAssertEqual(both.fileNames, ["a.proto", "b.proto", "c.proto"])
    XCTAssertEqual(both.files[1].package, "b")
  }

  func testMissingImport() async throws {
    let set = try ProtoFileSet([File("a.proto", imports: ["b.proto"], uses: "b.Type")])
    await expectError(.invalidArgument, "a.proto imports b.proto for the type b.Type", "--include_imports") {
      try set.descriptorPool()
    }
    XCTAssertTrue(try set.source(ofFile: "a.proto").contains("import \"b.proto\";\n"))
    // By way of another file.
    let chain = try ProtoFileSet([
      File("a.proto", imports: ["c.proto"], uses: "b.Type"), File("c.proto", imports: ["b.proto"]),
    ])
    await expectError(.invalidArgument, "c.proto imports b.proto for the type b.Type") {
      try chain.descriptorPool()
    }
    // Nothing is missing but the type.
    let broken = try ProtoFileSet([File("a.proto", uses: "b.Type")])
    await expectError(.invalidArgument, "lacks the type .b.Type") { try broken.descriptorPool() }
  }

  func testImportThatNothingNeeds() throws {
    let set = try ProtoFileSet([File("a.proto", imports: ["b.proto"], services: ["S"], uses: "Holder")])
    XCTAssertEqual(try set.descriptorPool().messageNames, ["Holder"])
    XCTAssertTrue(try set.source(ofFile: "a.proto").contains("import \"b.proto\";\n"))
  }

  /// A set that was made without its imports.
  func testFilesOfGoogleProtobuf() async throws {
    let whole = try await ProtoFileSet.test()
    let set = try ProtoFileSet(whole.files.filter { !$0.name.hasPrefix("google/") })
    XCTAssertEqual(Set(set.fileNames), Set(whole.fileNames))
    XCTAssertEqual(try set.descriptorPool().messageNames, try whole.descriptorPool().messageNames)
    for name in [
      "any", "api", "descriptor", "duration", "empty", "field_mask", "source_context", "struct", "timestamp",
      "type", "wrappers",
    ] {
      let file = try XCTUnwrap(WellKnownFiles.file(named: "google/protobuf/\(name).proto"), name)
      XCTAssertNoThrow(try ProtoFileSet([file]).descriptorPool(), name)
    }
    XCTAssertNil(WellKnownFiles.file(named: "google/protobuf/none.proto"))
  }

  // MARK: Short names

  func testShortNames() async throws {
    let set = try await ProtoFileSet.test()
    for (name, full) in [
      ("Payload", ["connect.test.v1.Payload"]), ("v1.Payload", ["connect.test.v1.Payload"]),
      (".connect.test.v1.Payload", ["connect.test.v1.Payload"]),
      ("TestService", ["connect.test.v1.TestService"]),
      ("TestService/Echo", ["connect.test.v1.TestService.Echo"]),
      ("Payload.text", ["connect.test.v1.Payload.text"]), ("Timestamp", ["google.protobuf.Timestamp"]),
      ("ayload", []), ("Payload.none", []), ("none", []), ("", []), (".", []),
    ] {
      XCTAssertEqual(set.fullNames(of: name), full, name)
    }
    let twice = try ProtoFileSet([
      self.file("a") {
        $0.package = "a"
        $0.messageType = [.with { $0.name = "M" }]
      },
      self.file("b") {
        $0.package = "b"
        $0.messageType = [.with { $0.name = "M" }]
      },
    ])
    XCTAssertEqual(twice.fullNames(of: "M"), ["a.M", "b.M"])
    XCTAssertEqual(twice.fullNames(of: "b.M"), ["b.M"])
  }

  func testAllFiles() async throws {
    let set = try await ProtoFileSet.test()
    let source = set.sourceOfAll()
    XCTAssertTrue(source.hasPrefix("// connect/test/v1/test.proto\n\n"), source)
    XCTAssertTrue(source.contains("service TestService {"), source)
    XCTAssertFalse(source.contains("message Timestamp {"), source)
    XCTAssertTrue(try set.jsonOfAll().contains(#""name": "connect/test/v1/test.proto""#))
    let wellKnown = try ProtoFileSet(set.files.filter { $0.name.hasSuffix("timestamp.proto") })
    XCTAssertTrue(wellKnown.sourceOfAll().contains("message Timestamp {"))
  }

  func testOrder() async throws {
    let set = try ProtoFileSet([
      self.file("a") { $0.dependency = ["b", "c"] }, self.file("c"), self.file("b") { $0.dependency = ["c"] },
      self.file("c"),
    ])
    XCTAssertEqual(set.fileNames, ["c", "b", "a"])
    await expectError(.invalidArgument, "imports itself") {
      try ProtoFileSet([
        self.file("a") { $0.dependency = ["b"] }, self.file("b") { $0.dependency = ["a"] },
      ])
    }
    await expectError(.invalidArgument, "two files are named a") {
      try ProtoFileSet([self.file("a"), self.file("a") { $0.package = "x" }])
    }
    // A long chain takes no stack.
    let chain = (0..<20_000).map { number in self.file("\(number)") { $0.dependency = ["\(number + 1)"] } }
    XCTAssertEqual(try ProtoFileSet(chain).fileNames.first, "19999")
  }

  func testNamesThatAreNone() async throws {
    for name in ["", "a b", "1a", "a\n", "a.b", "ä", "a;"] {
      await expectError(.invalidArgument, "is no name") {
        try ProtoFileSet([self.file("x") { $0.messageType = [.with { $0.name = name }] }])
      }
    }
    await expectError(.invalidArgument, "4096 bytes") {
      try ProtoFileSet([self.file("x") { $0.package = String(repeating: "a", count: 5000) }])
    }
    let long = String(repeating: "a", count: 4000)
    await expectError(.resourceExhausted, "names") {
      try ProtoFileSet([
        self.file("x") { file in
          file.package = long
          file.messageType = (0..<20_000).map { number in .with { $0.name = "a\(number)" } }
        }
      ])
    }
  }

  /// What a hostile server says in comments and texts does not get to a terminal as commands.
  func testControlCharacters() throws {
    let set = try ProtoFileSet([
      self.file("x") { file in
        file.messageType = [
          .with {
            $0.name = "M"
            $0.field = [
              .with {
                $0.name = "a"
                $0.number = 1
                $0.type = .string
                $0.label = .optional
                $0.defaultValue = "\u{1b}[2J\n"
              }
            ]
          }
        ]
        file.options.javaPackage = "\u{1b}\u{85}\""
        file.sourceCodeInfo.location = [
          .with {
            $0.path = [4, 0]
            $0.span = [1, 1, 1]
            $0.leadingComments = " a\u{1b}[2J\r\n b\n"
          }
        ]
      }
    ])
    let source = try set.source(ofFile: "x")
    XCTAssertTrue(source.contains("// a\u{fffd}[2J\n// b\nmessage M {\n"), source)
    XCTAssertTrue(source.contains(#"option java_package = "\033\302\205\"";"#), source)
    XCTAssertTrue(source.contains(#"[default = "\033[2J\n"]"#), source)
  }

  func testOptionsThatNoFileDefines() throws {
    let message = Google_Protobuf_DescriptorProto.with {
      $0.name = "M"
      $0.options = (try? .init(serializedBytes: [0x88, 0xb5, 0x18, 1, 0x18, 1] as [UInt8])) ?? .init()
      $0.field = [
        .with {
          $0.name = "a"
          $0.number = 1
          $0.type = .int32
          $0.label = .optional
          $0.options = (try? .init(serializedBytes: [0x8a, 0xb5, 0x18, 1, 0x41] as [UInt8])) ?? .init()
        }
      ]
    }
    let set = try ProtoFileSet([self.file("x") { $0.messageType = [message] }])
    XCTAssertEqual(
      try set.source(of: "M"),
      """
      message M {
        // Left out of the options: field 50001 of google.protobuf.MessageOptions, which the proto files do not define

        option deprecated = true;

        // Left out of the options: field 50001 of google.protobuf.FieldOptions, which the proto files do not define
        int32 a = 1;
      }

      """
    )
  }

  /// As deep as messages may be in one another.
  func testDeepMessages() throws {
    var message = Google_Protobuf_DescriptorProto.with { $0.name = "M" }
    for _ in 0..<96 {
      message = .with {
        $0.name = "M"
        $0.nestedType = [message]
      }
    }
    let bytes = try ProtoFileSet([self.file("x") { $0.messageType = [message] }]).serialized()
    let set = try ProtoFileSet(serializedFileDescriptorSet: bytes)
    let name = Array(repeating: "M", count: 97).joined(separator: ".")
    XCTAssertEqual(try set.source(of: name), "message M {}\n")
    XCTAssertEqual(try set.source(ofFile: "x").split(separator: "\n").count, 1 + 96 + 1 + 96)
    XCTAssertFalse(try set.json(of: "M").isEmpty)
  }

  /// An option that the source sets in pieces comes as several messages.
  func testOptionInPieces() async throws {
    try await Folders.withTemporary { folder in
      let path = folder.appending(path: "pieces.proto").path()
      let text = """
        syntax = "proto2";
        import "legacy.proto";
        message M { option (acme.legacy.message).a = 7; option (acme.legacy.message).(acme.legacy.more).a = 8; }
        """
      try Data(text.utf8).write(to: URL(filePath: path))
      let set = try await ProtoFileSet.compile([path], importPaths: [folder.path(), Folders.own])
      let option = "  option (acme.legacy.message) = { a: 7 [more] { a: 8 } };\n"
      XCTAssertEqual(try set.source(of: "M"), "message M {\n\(option)}\n")
    }
  }
}
