import Foundation
import SwiftProtobufPluginLibrary
import XCTest

@testable import ConnectCodegen

/// Where files go, and what is said of options that are not right.
final class OptionTests: XCTestCase {
  private let twoFiles: KeyValuePairs = [
    "a/b/one.proto": "syntax = \"proto3\"; message M {} service One { rpc Go(M) returns (M); }",
    "c/none.proto": "syntax = \"proto3\"; message N {}",
  ]

  func testFileNaming() throws {
    let names = ["FullPath": "a/b/one", "PathToUnderscores": "a_b_one", "DropPath": "one"]
    for (naming, name) in names {
      let request = try ProtoFiles.request(texts: self.twoFiles, "FileNaming=\(naming)")
      XCTAssertEqual(Plugin.respond(to: request, StubGenerator()).file.map(\.name), ["\(name).connect.swift"])
      XCTAssertEqual(Plugin.respond(to: request, MockGenerator()).file.map(\.name), ["\(name).mock.swift"])
    }
  }

  func testFilesWithoutServicesAreGeneratedOnRequest() throws {
    let request = try ProtoFiles.request(texts: self.twoFiles, "GenerateEmptyFiles=true")
    let names = Plugin.respond(to: request, StubGenerator()).file.map(\.name)
    XCTAssertEqual(names, ["a/b/one.connect.swift", "c/none.connect.swift"])
  }

  func testEmptyFileIsAccepted() throws {
    let request = try ProtoFiles.request(texts: ["nothing.proto": ""])
    let response = Plugin.respond(to: request, StubGenerator())
    XCTAssertEqual(response.error, "")
    XCTAssertEqual(response.file, [])
  }

  func testBadOptions() throws {
    let problems: KeyValuePairs = [
      "Visibility=public": "the option Visibility is 'public', expected is one of Internal, Package, Public",
      "FileNaming=Short":
        "the option FileNaming is 'Short', expected is one of FullPath, PathToUnderscores, DropPath",
      "MessageFamily=": "the option MessageFamily is '', expected is one of SwiftProtobuf, ProtobufC",
      "GenerateAsyncMethods": "the option GenerateAsyncMethods is '', expected is true or false",
      "GenerateCallbackMethods=1": "the option GenerateCallbackMethods is '1', expected is true or false",
      "GenerateEmptyFiles=yes": "the option GenerateEmptyFiles is 'yes', expected is true or false",
      "KeepMethodCasing=True": "the option KeepMethodCasing is 'True', expected is true or false",
      "UseAccessLevelOnImports=no": "the option UseAccessLevelOnImports is 'no', expected is true or false",
      "ExtraModuleImports=a b": "the option ExtraModuleImports is 'a b', expected is the name of a module",
      "SwiftProtobufModuleName=1":
        "the option SwiftProtobufModuleName is '1', expected is the name of a module",
      "StructModuleName=": "the option StructModuleName is '', expected is the name of a module",
      "StructModuleName=CStructs": "the option StructModuleName needs MessageFamily=ProtobufC",
      "ConnectSwiftCompatibility=yes":
        "the option ConnectSwiftCompatibility is 'yes', expected is true or false",
      "ConnectSwiftCompatibility=true,MessageFamily=ProtobufC":
        "the option ConnectSwiftCompatibility needs MessageFamily=SwiftProtobuf",
      "ProtoPathModuleMappings=": "the option ProtoPathModuleMappings is '', expected is a path",
      "Colour=blue": "there is no option 'Colour'",
      "GenerateAsyncMethods=false": "GenerateAsyncMethods and GenerateCallbackMethods are both false",
    ]
    for (parameter, problem) in problems {
      let response = Plugin.respond(to: try ProtoFiles.request("small.proto", parameter), StubGenerator())
      XCTAssertEqual(response.error, "small.proto: \(problem)")
      XCTAssertEqual(response.file, [])
    }
  }

  func testModuleMappingsThatCannotBeUsed() throws {
    let broken = FileManager.default.temporaryDirectory.appending(path: "\(UUID().uuidString).textproto")
    try Data("mapping {".utf8).write(to: broken)
    defer { try? FileManager.default.removeItem(at: broken) }
    for path in ["/no/such/file", broken.path] {
      let request = try ProtoFiles.request("small.proto", "ProtoPathModuleMappings=\(path)")
      let response = Plugin.respond(to: request, StubGenerator())
      let start = "small.proto: the option ProtoPathModuleMappings is '\(path)', which cannot be used: "
      XCTAssertTrue(response.error.hasPrefix(start), response.error)
      XCTAssertEqual(response.file, [])
    }
  }

  func testTwoFilesOfOneName() throws {
    let service = "service S { rpc Go(M) returns (M); }"
    let request = try ProtoFiles.request(
      texts: [
        "a/x.proto": "syntax = \"proto3\"; package a; message M {} \(service)",
        "b/x.proto": "syntax = \"proto3\"; package b; message M {} \(service)",
      ],
      "FileNaming=DropPath"
    )
    let response = Plugin.respond(to: request, StubGenerator())
    XCTAssertEqual(
      response.error,
      "b/x.proto: gives 'x.connect.swift' as 'a/x.proto' does: FileNaming=DropPath is too short"
    )
    XCTAssertEqual(response.file, [])
  }
}
