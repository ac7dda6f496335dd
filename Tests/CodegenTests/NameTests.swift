import SwiftProtobufPluginLibrary
import XCTest

@testable import ConnectCodegen

/// The names of generated declarations. That they compile is shown by Tests/NastyProtoTests.
final class NameTests: XCTestCase {
  /// The names of the specifications of a service with such methods.
  private func methodNames(_ names: [String], _ parameter: String = "") throws -> [String] {
    let methods = names.map { "rpc \($0)(.M) returns (.M);" }.joined(separator: "\n")
    let text = "syntax = \"proto3\"; message M {} service S { \(methods) }"
    let stub = try generate(ProtoFiles.request(texts: ["names.proto": text], parameter), StubGenerator())
    return stub.matches(of: /static let (\S+) =/).map { String($0.1) }
  }

  private func typeNames(_ texts: KeyValuePairs<String, String>) throws -> [String] {
    let response = Plugin.respond(to: try ProtoFiles.request(texts: texts), StubGenerator())
    XCTAssertEqual(response.error, "")
    return response.file.flatMap { $0.content.matches(of: /\nstruct (\S+):/).map { String($0.1) } }
  }

  func testLowerCamelCase() throws {
    XCTAssertEqual(
      try self.methodNames(["SayHello", "say_goodbye", "GetUserId", "V2Get"]),
      ["sayHello", "sayGoodbye", "getUserID", "v2Get"]
    )
    XCTAssertEqual(
      try self.methodNames(["SayHello", "say_goodbye", "GetUserId"], "KeepMethodCasing=true"),
      ["SayHello", "say_goodbye", "GetUserId"]
    )
  }

  func testMethodsThatDifferInCasingAloneKeepIt() throws {
    XCTAssertEqual(try self.methodNames(["GetFoo", "get_foo", "GetBar"]), ["GetFoo", "get_foo", "getBar"])
    XCTAssertEqual(
      try self.methodNames(["get_foo", "get__foo", "get_Foo"]),
      ["get_foo", "get_Foo", "get_Foo_"]
    )
  }

  func testKeywordsAndReservedNames() throws {
    XCTAssertEqual(
      try self.methodNames(["Default", "Import", "Init", "init_", "Self", "DynamicType", "Type", "Get"]),
      ["`default`", "`import`", "init_", "init__", "self_", "dynamicType_", "type", "get"]
    )
    XCTAssertEqual(
      try self.methodNames(["Any", "Type", "Protocol", "Self", "Methods"], "KeepMethodCasing=true"),
      ["`Any`", "Type_", "Protocol_", "Self_", "Methods_"]
    )
  }

  func testDigitsAndUnderscoresAlone() throws {
    XCTAssertEqual(try self.methodNames(["_1st", "_", "__"]), ["_1St", "__", "___"])
  }

  func testServicesWhoseTypesAreTakenByMessages() throws {
    let text = """
      syntax = "proto3";
      message FooClient {}
      enum BarClientInterface { ZERO = 0; }
      service Foo {}
      service Bar {}
      service Bar_ {}
      """
    XCTAssertEqual(try self.typeNames(["a.proto": text]), ["Foo_Client", "Bar_Client", "Bar__Client"])
  }

  func testServicesWhoseTypesAreTakenByImportedMessages() throws {
    XCTAssertEqual(
      try self.typeNames([
        "a.proto": "syntax = \"proto3\"; package p; message FooClient {}",
        "b.proto":
          "syntax = \"proto3\"; package p; import \"a.proto\"; service Foo {} service Bar { rpc A(FooClient) returns (FooClient); }",
      ]),
      ["P_Foo_Client", "P_BarClient"]
    )
  }

  func testSwiftPrefix() throws {
    let text = "syntax = \"proto3\"; package p; option swift_prefix = \"Mine\"; service Foo {}"
    XCTAssertEqual(try self.typeNames(["a.proto": text]), ["MineFooClient"])
  }

  func testMessagesWithNamesOfModulesAreTakenForNoModule() throws {
    let request = try ProtoFiles.request(
      texts: [
        "a.proto": "syntax = \"proto3\"; message Connect {}",
        "b.proto": "syntax = \"proto3\"; package p; message M {} service Foo { rpc A(M) returns (M); }",
      ]
    )
    let stub = try generate(request, StubGenerator())
    XCTAssertTrue(stub.contains("Connect::MethodSpec<P_M, P_M>("), stub)
    XCTAssertFalse(stub.contains("Connect."), stub)
  }

  func testPackageOfC() throws {
    let options = """
      syntax = "proto2";
      import "google/protobuf/descriptor.proto";
      message ProtobufCFileOptions { optional bool no_generate = 1; optional string c_package = 6; }
      extend google.protobuf.FileOptions { optional ProtobufCFileOptions pb_c_file = 1019; }
      """
    let text = """
      syntax = "proto3";
      package named.p;
      import "c.proto";
      option (pb_c_file).no_generate = false;
      option (pb_c_file).c_package = "other_name.v2";
      message M {}
      service Foo { rpc A(M) returns (M); }
      """
    let request = try ProtoFiles.request(
      texts: ["c.proto": options, "a.proto": text],
      "MessageFamily=ProtobufC"
    )
    let stub = try generate(request, StubGenerator())
    let message = "ConnectProtobufC.CMessage<OtherName__V2__M>"
    XCTAssertTrue(stub.contains("MethodSpec<\(message), \(message)>("), stub)
    XCTAssertTrue(stub.contains("struct OtherName__V2__FooClient:"), stub)
    XCTAssertTrue(stub.contains("path: \"/named.p.Foo/A\""), stub)
  }
}
