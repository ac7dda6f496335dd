import Foundation
import XCTest

/// What the plugins for SwiftPM say of a `connect-codegen.json` that is not right. Their sources are in `PluginSources`,
/// as no target can depend on a plugin's.
final class PluginConfigurationTests: XCTestCase {
  private var folder = URL(filePath: "/")
  private var file: URL { self.folder.appending(path: Configuration.fileName) }

  override func setUpWithError() throws {
    self.folder = FileManager.default.temporaryDirectory.appending(path: "plugin-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: self.folder, withIntermediateDirectories: true)
  }

  override func tearDownWithError() throws {
    try FileManager.default.removeItem(at: self.folder)
  }

  /// What the plugins print for such a configuration; nil if they accept it.
  private func problem(_ json: String) throws -> String? {
    try Data(json.utf8).write(to: self.file)
    do {
      _ = try Generation(configurationFile: self.file)
      return nil
    } catch {
      return "\(error)"
    }
  }

  private func expect(
    _ json: String,
    _ problem: String,
    file: StaticString = #filePath,
    line: UInt = #line
  ) throws {
    XCTAssertEqual(
      try self.problem(json),
      "\(self.file.path): \(problem)",
      json.debugDescription,
      file: file,
      line: line
    )
  }

  func testMalformedJSONHasLineAndColumn() throws {
    try self.expect(
      """
      {
        "protoRoots": ["."],
        "mocks": tru
      }
      """,
      "is not JSON: line 3, column 15: Invalid value"
    )
    try self.expect(
      "{\r\n  \"mocks\": true\r\n  \"stubs\": true\r\n}\r\n",
      "is not JSON: line 3, column 3: Invalid value"
    )
    try self.expect("{ \"pröto\": \"ü\", 5 }", "is not JSON: line 1, column 17: Invalid value")
    try self.expect("// none\n{}", "is not JSON: line 1, column 1: Invalid value")
    try self.expect("{} x", "is not JSON: line 1, column 4: Invalid value")
    try self.expect("", "is not JSON: line 1, column 1: Unexpected end of file during JSON parse.")
    try self.expect(
      "{\n\"mocks\":",
      "is not JSON: line 2, column 9: Unexpected end of file during JSON parse."
    )
  }

  func testJSONOfAnotherTypeNamesTheKey() throws {
    let problem = try XCTUnwrap(self.problem("{ \"protoRoots\": [\".\", 1] }"))
    XCTAssertTrue(problem.hasPrefix("\(self.file.path): "), problem)
    XCTAssertTrue(problem.contains("protoRoots"), problem)
    try self.expect(
      "{ \"colour\": 1 }",
      """
      there is no 'colour', only protoRoots, files, importPaths, protocPath, output, messages, stubs, mocks, options, \
      messageOptions
      """
    )
  }

  func testMissingProtoRootIsNamed() throws {
    try FileManager.default.createDirectory(
      at: self.folder.appending(path: "Protos"),
      withIntermediateDirectories: true
    )
    try Data("syntax = \"proto3\";".utf8).write(to: self.folder.appending(path: "Protos/a.proto"))
    XCTAssertNil(try self.problem("{ \"protoRoots\": [\"Protos\"] }"))
    try self.expect(
      "{ \"protoRoots\": [\"Protos\", \"More/Protos\"] }",
      "there is no folder '\(self.folder.path)/More/Protos', which protoRoots names"
    )
    // A file is no folder.
    try self.expect(
      "{ \"protoRoots\": [\"Protos/a.proto\"] }",
      "there is no folder '\(self.folder.path)/Protos/a.proto', which protoRoots names"
    )
  }
}
