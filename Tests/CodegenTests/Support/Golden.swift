import Foundation
import XCTest

/// Fails and shows the difference if `text` is not equal to the committed file in `Goldens`. With `UPDATE_GOLDENS=1` in
/// the environment, writes the file instead.
func expectGolden(_ text: String, _ name: String, line: UInt = #line) throws {
  let golden = ProtoFiles.testFolder.appending(path: "Goldens").appending(path: name)
  if ProcessInfo.processInfo.environment["UPDATE_GOLDENS"] == "1" {
    try Data(text.utf8).write(to: golden)
    return
  }
  if let expected = try? String(contentsOf: golden, encoding: .utf8), expected == text { return }
  let actual = FileManager.default.temporaryDirectory.appending(path: "\(UUID().uuidString).swift")
  defer { try? FileManager.default.removeItem(at: actual) }
  try Data(text.utf8).write(to: actual)
  let difference = try run(
    "diff",
    ["-u", "--label", "Goldens/\(name)", "--label", "generated", golden.path, actual.path]
  )
  XCTFail("\(difference)\nIf this is right: UPDATE_GOLDENS=1 swift test --filter CodegenTests", line: line)
}
