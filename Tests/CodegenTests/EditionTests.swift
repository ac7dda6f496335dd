import Foundation
import SwiftProtobuf
import SwiftProtobufPluginLibrary
import XCTest

@testable import ConnectCodegen

/// Proto files of editions, which newer versions of protoc take.
final class EditionTests: XCTestCase {
  private func expectError(_ request: GeneratorRequest, _ error: String, line: UInt = #line) {
    let response = Plugin.respond(to: request, StubGenerator())
    XCTAssertEqual(response.error, error, line: line)
    XCTAssertEqual(response.file, [], line: line)
  }

  /// A request with what edition 2024 has brought: visible and hidden symbols, options of a file that is imported for
  /// them alone, and features that this generator does not know.
  private func request(_ parameter: String = "") throws -> GeneratorRequest {
    try ProtoFiles.request(
      texts: [
        "features.proto": """
        edition = "2024";
        package acme.features;
        import "google/protobuf/descriptor.proto";
        export message AcmeFeatures {
          bool loud = 1 [
            retention = RETENTION_RUNTIME,
            targets = TARGET_TYPE_FILE,
            feature_support = { edition_introduced: EDITION_2023 },
            edition_defaults = { edition: EDITION_LEGACY, value: "false" }
          ];
        }
        extend google.protobuf.FeatureSet { AcmeFeatures acme = 9990; }
        """,
        "notes.proto": """
        edition = "2024";
        package acme.notes;
        import "google/protobuf/descriptor.proto";
        export message Note { string text = 1; }
        extend google.protobuf.MethodOptions { Note note = 50001; }
        """,
        "common.proto": """
        edition = "2024";
        package acme.common;
        export message Common {
          local enum Kind { KIND_UNSPECIFIED = 0; KIND_GOOD = 1; }
          Kind kind = 1;
        }
        """,
        "asking.proto": """
        edition = "2024";
        package acme.asking;
        import "common.proto";
        import option "features.proto";
        import option "notes.proto";
        option features.(acme.features.acme).loud = true;
        option features.field_presence = IMPLICIT;
        export message Question {
          string text = 1 [features.field_presence = EXPLICIT];
          acme.common.Common common = 2;
          Answer.Part part = 3 [features.message_encoding = DELIMITED];
        }
        local message Answer { export message Part { int32 number = 1; } Part part = 1; }
        service Asking {
          rpc Ask(Question) returns (Answer) {
            option (acme.notes.note) = { text: "quiet" };
            option idempotency_level = NO_SIDE_EFFECTS;
          }
          rpc Watch(Question) returns (stream acme.common.Common);
        }
        """,
      ],
      parameter,
      protoc: ProtoFiles.newerProtoc()
    )
  }

  func testEdition2024() throws {
    let response = Plugin.respond(to: try self.request(), StubGenerator())
    XCTAssertEqual(response.error, "")
    XCTAssertEqual(response.file.map(\.name), ["asking.connect.swift"])
    let text = try XCTUnwrap(response.file.first).content
    for part in [
      "protocol Acme_Asking_AskingClientInterface",
      "MethodSpec<Acme_Asking_Question, Acme_Asking_Answer>",
      "MethodSpec<Acme_Asking_Question, Acme_Common_Common>",
      "noSideEffects",
    ] {
      XCTAssertTrue(text.contains(part), "\(part) is not in\n\(text)")
    }
    let mocks = Plugin.respond(to: try self.request(), MockGenerator())
    XCTAssertEqual(mocks.error, "")
    XCTAssertEqual(mocks.file.map(\.name), ["asking.mock.swift"])
  }

  /// protoc sends a file that is imported for its options alone to generators only if it generates from it, too.
  func testOptionImportsMayBeMissing() throws {
    var request = try self.request()
    let files = ["features.proto", "notes.proto"]
    request.protoFile.removeAll { files.contains($0.name) }
    request.fileToGenerate.removeAll { files.contains($0) }
    XCTAssertEqual(
      try generate(request, StubGenerator()),
      Plugin.respond(to: try self.request(), StubGenerator()).file.first?.content
    )
  }

  func testStructsOfEdition2024() throws {
    let request = try self.request("MessageFamily=ProtobufC,StructModuleName=AcmeStructs")
    let response = Plugin.respond(to: request, StubGenerator())
    XCTAssertEqual(response.error, "")
    let asking = try XCTUnwrap(response.file.first { $0.name == "asking.connect.swift" }).content
    let base64 = try XCTUnwrap(asking.firstMatch(of: /base64: "([^"]*)"/)?.output.1)
    let set = try Google_Protobuf_FileDescriptorSet(
      serializedBytes: try XCTUnwrap(Data(base64Encoded: String(base64)))
    )
    XCTAssertEqual(set.file.map(\.name), ["common.proto", "asking.proto"])
    XCTAssertTrue(set.file.allSatisfy { $0.edition == .edition2024 })
  }

  /// The names and kinds of methods do not depend on the edition.
  func testAllEditions() throws {
    let expected = try generate(try ProtoFiles.request("streams.proto"), StubGenerator())
    for edition in [Google_Protobuf_Edition.edition2023, .edition2024, .edition2026] {
      var request = try ProtoFiles.request("streams.proto")
      request.protoFile[0].syntax = "editions"
      request.protoFile[0].edition = edition
      request.protoFile[0].options.features.fieldPresence = .implicit
      XCTAssertEqual(try generate(request, StubGenerator()), expected, "\(edition)")
    }
  }

  func testLaterEdition() throws {
    var request = try ProtoFiles.request("streams.proto")
    request.protoFile[0].syntax = "editions"
    let advice =
      "but editions up to 2026 are: write 'edition = \"2026\";', or use a later version of this generator"
    request.protoFile[0].edition = .unstable
    self.expectError(request, "streams.proto:1: edition UNSTABLE is not supported, \(advice)")
    request.protoFile[0].sourceCodeInfo.location.append(
      .with {
        $0.path = [14]
        $0.span = [2, 0, 17]
      }
    )
    self.expectError(request, "streams.proto:3: edition UNSTABLE is not supported, \(advice)")
    // As SwiftProtobuf reads an edition that it does not know.
    request.protoFile[0].clearEdition()
    self.expectError(request, "streams.proto:3: its edition is not supported, \(advice)")
  }
}
