import Foundation
import SwiftProtobuf
import SwiftProtobufPluginLibrary
import XCTest

@testable import ConnectCodegen

/// What the generators tell protoc that they support, and what they say to the rest.
final class FeatureTests: XCTestCase {
  private func expectError(_ request: GeneratorRequest, _ error: String, line: UInt = #line) {
    let response = Plugin.respond(to: request, StubGenerator())
    XCTAssertEqual(response.error, error, line: line)
    XCTAssertEqual(response.file, [], line: line)
  }

  func testDeclaredFeatures() throws {
    for parameter in ["", "NoSuch=option"] {
      let response = Plugin.respond(to: try ProtoFiles.request("small.proto", parameter), StubGenerator())
      let features =
        GeneratorResponse.Feature.proto3Optional.rawValue
        | GeneratorResponse.Feature.supportsEditions.rawValue
      XCTAssertEqual(response.supportedFeatures, UInt64(features))
      XCTAssertEqual(response.minimumEdition, Int32(Google_Protobuf_Edition.proto2.rawValue))
      XCTAssertEqual(response.maximumEdition, Int32(Google_Protobuf_Edition.edition2026.rawValue))
    }
  }

  func testProto2AndProto3Optional() throws {
    let request = try ProtoFiles.request(
      texts: [
        "two.proto": """
        syntax = "proto2";
        package two;
        message M { required int32 a = 1; optional group G = 2 { required int32 b = 1; } }
        service S { rpc Go(M) returns (M.G); }
        """,
        "three.proto": """
        syntax = "proto3";
        package three;
        message M { optional int32 a = 1; }
        service S { rpc Go(M) returns (M); }
        """,
      ]
    )
    let response = Plugin.respond(to: request, StubGenerator())
    XCTAssertEqual(response.error, "")
    XCTAssertEqual(response.file.map(\.name), ["two.connect.swift", "three.connect.swift"])
    XCTAssertTrue(response.file[0].content.contains("MethodSpec<Two_M, Two_M.G>"))
  }

  func testUnknownSyntax() throws {
    var request = try ProtoFiles.request("streams.proto")
    request.protoFile[0].syntax = "proto9"
    self.expectError(request, "streams.proto:1: the syntax 'proto9' is not supported")
  }

  func testBadSwiftPrefix() throws {
    let text = """
      syntax = "proto3";

      option swift_prefix = "not good";
      message M {}
      service S { rpc Go(M) returns (M); }
      """
    let request = try ProtoFiles.request(texts: ["prefix.proto": text])
    self.expectError(
      request,
      "prefix.proto:3: the option swift_prefix is 'not good', which is no Swift identifier"
    )
  }

  func testGoodFilesBesideABadOneAreNotGenerated() throws {
    let service = "message M {} service S { rpc Go(M) returns (M); }"
    let request = try ProtoFiles.request(
      texts: [
        "good.proto": "syntax = \"proto3\"; package good; \(service)",
        "bad.proto": "syntax = \"proto3\"; package bad; option swift_prefix = \"1\"; \(service)",
      ]
    )
    self.expectError(request, "bad.proto:1: the option swift_prefix is '1', which is no Swift identifier")
  }

  func testMissingImport() throws {
    var request = try ProtoFiles.request("small.proto")
    request.protoFile.removeAll { $0.name == "streams.proto" }
    self.expectError(request, "small.proto:6: protoc did not send the imported file 'streams.proto'")
  }

  func testMissingFile() throws {
    var request = try ProtoFiles.request("small.proto")
    request.fileToGenerate = ["other.proto"]
    let response = Plugin.respond(to: request, StubGenerator())
    XCTAssertTrue(response.error.contains("other.proto"), response.error)
  }

  func testBytesThatAreNoRequest() throws {
    XCTAssertThrowsError(try Plugin.respond(to: Data([0xff, 0xff]), StubGenerator()))
    let bytes = try ProtoFiles.request("small.proto").serializedData()
    let response = try GeneratorResponse(serializedBytes: Plugin.respond(to: bytes, StubGenerator()))
    XCTAssertEqual(response.file.map(\.name), ["small.connect.swift"])
  }
}
