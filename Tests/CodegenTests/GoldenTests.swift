import Foundation
import XCTest

@testable import ConnectCodegen

/// The whole text of what is generated, for every kind of method and every option.
final class GoldenTests: XCTestCase {
  private func expectStub(_ file: String, _ parameter: String, _ golden: String, line: UInt = #line) throws {
    let text = try generate(ProtoFiles.request(file, parameter), StubGenerator())
    try expectGolden(text, golden, line: line)
  }

  private func expectMock(_ file: String, _ parameter: String, _ golden: String, line: UInt = #line) throws {
    let text = try generate(ProtoFiles.request(file, parameter), MockGenerator())
    try expectGolden(text, golden, line: line)
  }

  // MARK: Kinds of methods

  func testAsyncMethodsOfAllKinds() throws {
    try self.expectStub("streams.proto", "", "streams.async.swift")
  }

  func testCallbackMethodsOfAllKinds() throws {
    try self.expectStub(
      "streams.proto",
      "GenerateAsyncMethods=false,GenerateCallbackMethods=true",
      "streams.callbacks.swift"
    )
  }

  func testMethodsInBothForms() throws {
    try self.expectStub("streams.proto", "GenerateCallbackMethods=true", "streams.both.swift")
  }

  func testMocksOfAllKinds() throws {
    try self.expectMock(
      "streams.proto",
      "Visibility=Public,GenerateCallbackMethods=true",
      "streams.mock.swift"
    )
  }

  // MARK: Options

  func testPublicVisibility() throws {
    try self.expectStub("small.proto", "Visibility=Public", "small.public.swift")
  }

  func testPackageVisibilityWithAccessLevelsOnImports() throws {
    try self.expectStub(
      "small.proto",
      "Visibility=Package,UseAccessLevelOnImports=true",
      "small.package.swift"
    )
  }

  func testInternalMock() throws {
    try self.expectMock("small.proto", "UseAccessLevelOnImports=true", "small.internal.mock.swift")
  }

  func testKeptMethodCasing() throws {
    try self.expectStub("small.proto", "KeepMethodCasing=true", "small.casing.swift")
  }

  func testExtraModuleImports() throws {
    let imports = "ExtraModuleImports=Zebra,ExtraModuleImports=Ant,ExtraModuleImports=Connect"
    try self.expectStub("small.proto", imports, "small.imports.swift")
  }

  func testModuleMappings() throws {
    let mappings = ProtoFiles.folder.appending(path: "modules.textproto").path
    try self.expectStub("small.proto", "ProtoPathModuleMappings=\(mappings)", "small.mapped.swift")
  }

  func testSwiftProtobufModuleName() throws {
    try self.expectStub("small.proto", "SwiftProtobufModuleName=MyProtobuf", "small.protobuf_name.swift")
  }

  func testSwiftProtobufMessages() throws {
    try self.expectStub("families.proto", "MessageFamily=SwiftProtobuf", "families.swift_protobuf.swift")
  }

  func testProtobufCMessages() throws {
    let options = "MessageFamily=ProtobufC,ExtraModuleImports=CGolden"
    try self.expectStub("families.proto", options, "families.protobuf_c.swift")
    try self.expectMock("families.proto", options, "families.protobuf_c.mock.swift")
  }

  func testConformancesOfStructs() throws {
    let options = "MessageFamily=ProtobufC,StructModuleName=CGolden"
    try self.expectStub("structs.proto", options, "structs.swift")
    try self.expectStub("structs.proto", "UseAccessLevelOnImports=true,\(options)", "structs.access.swift")
    try self.expectMock("structs.proto", options, "structs.mock.swift")
  }

  func testConnectSwiftsForm() throws {
    let options = "ConnectSwiftCompatibility=true"
    try self.expectStub(
      "streams.proto",
      "\(options),GenerateCallbackMethods=true",
      "connect_swift.both.swift"
    )
    let callbacks = "\(options),GenerateAsyncMethods=false,GenerateCallbackMethods=true"
    try self.expectStub("small.proto", callbacks, "connect_swift.callbacks.swift")
    try self.expectMock(
      "streams.proto",
      "\(options),Visibility=Public,GenerateCallbackMethods=true,ExtraModuleImports=Stubs",
      "connect_swift.mock.swift"
    )
    try self.expectMock(
      "small.proto",
      "\(options),Visibility=Package,UseAccessLevelOnImports=true",
      "connect_swift.package.mock.swift"
    )
  }

  func testFileWithoutServices() throws {
    let text = "syntax = \"proto3\"; message Lonely {}"
    let request = try ProtoFiles.request(texts: ["empty.proto": text], "GenerateEmptyFiles=true")
    try expectGolden(generate(request, StubGenerator()), "empty.swift")
  }
}
