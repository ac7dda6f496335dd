import Foundation
import XCTest

/// The code that documents show of the example is in the example, so it compiles.
final class DocumentTests: XCTestCase {
  private let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../..")
    .standardized

  private func sources(in folder: String) throws -> [String] {
    let folder = self.root.appending(path: folder)
    return try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
      .filter { $0.pathExtension == "swift" }
      .map { try String(contentsOf: $0, encoding: .utf8) }
  }

  func testShownCodeIsInTheExample() throws {
    let sources = try self.sources(in: "Tests/ConnectSwiftExample")
    var count = 0
    for document in [
      "Sources/Connect/Connect.docc/MigratingFromConnectSwift.md",
      "Sources/ConnectSwiftCompatibility/ConnectSwiftCompatibility.docc/ConnectSwiftCompatibility.md",
    ] {
      let text = try String(contentsOf: self.root.appending(path: document), encoding: .utf8)
      let mark = "<!-- code: none, in Tests/ConnectSwiftExample -->\n```swift\n"
      for piece in text.components(separatedBy: mark).dropFirst() {
        let code = piece.components(separatedBy: "```")[0]
        XCTAssertTrue(sources.contains { $0.contains(code) }, "\(document) shows what is not there:\n\(code)")
        count += 1
      }
    }
    XCTAssertEqual(count, 4)
  }
}
