import Foundation
import XCTest

/// What the plugins for SwiftPM say of mocks that could not see their clients. Their sources are in `PluginSources`.
final class PluginMockTests: XCTestCase {
  private var folder = URL(filePath: "/")
  private var clients: URL { self.folder.appending(path: "Shop/\(Configuration.fileName)") }
  private var mocks: URL { self.folder.appending(path: "ShopTests/\(Configuration.fileName)") }

  override func setUpWithError() throws {
    self.folder = FileManager.default.temporaryDirectory.appending(path: "plugin-\(UUID().uuidString)")
    for name in ["Shop", "ShopTests"] {
      let target = self.folder.appending(path: name)
      try FileManager.default.createDirectory(at: target, withIntermediateDirectories: true)
      try Data("syntax = \"proto3\";".utf8).write(to: target.appending(path: "a.proto"))
    }
  }

  override func tearDownWithError() throws {
    try FileManager.default.removeItem(at: self.folder)
  }

  /// What the plugins print for the mocks of these two configurations; nil if they accept them.
  private func problem(clients: String, mocks: String, isDependency: Bool = true) throws -> String? {
    try Data(clients.utf8).write(to: self.clients)
    try Data(mocks.utf8).write(to: self.mocks)
    let neighbour = Generation.Neighbour(
      module: "Shop",
      folder: self.clients.deletingLastPathComponent(),
      isDependency: isDependency
    )
    do {
      try Generation(configurationFile: self.mocks).checkMocks([neighbour])
      return nil
    } catch {
      return "\(error)"
    }
  }

  private func mocks(_ options: String) -> String {
    #"{ "messages": false, "stubs": false, "mocks": true, "options": { \#(options) } }"#
  }

  private static let imports = #""ExtraModuleImports": ["Shop"]"#

  /// One sentence names the option and the file, in place of an error for each line of a mock.
  func testClientsThatAreNotVisible() throws {
    for clients in [
      "{}", #"{ "options": { "Visibility": "Internal" } }"#,
      #"{ "options": { "Visibility": "Package" }, "messageOptions": { "Visibility": "Internal" } }"#,
    ] {
      XCTAssertEqual(
        try self.problem(clients: clients, mocks: self.mocks(Self.imports)),
        """
        \(self.mocks.path) asks for mocks of the clients of Shop, which are internal there: add \
        "options": { "Visibility": "Package" } to \(self.clients.path).
        """
      )
    }
    XCTAssertEqual(
      try self.problem(
        clients: #"{ "options": { "Visibility": "Package" } }"#,
        mocks: self.mocks(#"\#(Self.imports), "Visibility": "Public""#)
      ),
      """
      \(self.mocks.path) asks for public mocks of the clients of Shop, which are package there: add \
      "options": { "Visibility": "Public" } to \(self.clients.path).
      """
    )
  }

  func testAModuleThatIsNotImported() throws {
    let clients = #"{ "options": { "Visibility": "Package" } }"#
    XCTAssertEqual(
      try self.problem(clients: clients, mocks: self.mocks("")),
      """
      \(self.mocks.path) asks for mocks, and does not say which module has the clients: add \
      "ExtraModuleImports": ["Shop"] to its "options".
      """
    )
    XCTAssertNil(try self.problem(clients: clients, mocks: self.mocks(""), isDependency: false))
    // The clients may have been generated into the target before.
    let file = self.mocks.deletingLastPathComponent().appending(path: "a.connect.swift")
    try Data().write(to: file)
    XCTAssertNil(try self.problem(clients: clients, mocks: self.mocks("")))
  }

  func testWhatIsInOrder() throws {
    for (clients, mocks) in [
      (#"{ "options": { "Visibility": "Package" } }"#, self.mocks(Self.imports)),
      (#"{ "options": { "Visibility": "Public" } }"#, self.mocks(Self.imports)),
      (
        #"{ "options": { "Visibility": "Public" } }"#,
        self.mocks(#"\#(Self.imports), "Visibility": "Public""#)
      ),
      // Messages of another module.
      (
        #"{ "messages": false, "options": { "Visibility": "Package" } }"#, self.mocks(Self.imports)
      ),
      // Another module has the clients; this one has messages alone, or no mocks are asked for.
      (#"{ "stubs": false }"#, self.mocks(Self.imports)),
      ("{}", self.mocks(#""ExtraModuleImports": ["Other"]"#)),
      ("{}", "{}"), ("{}", #"{ "mocks": true }"#),
      // An error of its own target.
      ("{ x", self.mocks(Self.imports)),
    ] {
      XCTAssertNil(try self.problem(clients: clients, mocks: mocks), "\(clients) \(mocks)")
    }
  }
}
