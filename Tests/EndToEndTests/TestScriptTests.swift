import Foundation
import LoopbackServer
import XCTest

/// `.ci/test`, which runs the parts of `make test` and says at the end what came of them; with stand-ins for the programs
/// that it runs.
final class TestScriptTests: XCTestCase {
  /// Runs the script in a folder of its own.
  ///
  /// - Parameters:
  ///   - make: What `make` does with the target `$2`, in bash.
  ///   - xctest: What the program of the tests does.
  private func run(make: String = "", xctest: String) throws -> (status: Int32, lines: [String]) {
    let folder = FileManager.default.temporaryDirectory.appending(path: "test-script-\(UUID())")
    let scripts = folder.appending(path: ".ci")
    try FileManager.default.createDirectory(at: scripts, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    var root = URL(filePath: #filePath)
    for _ in 0..<3 { root.deleteLastPathComponent() }
    let ownScripts = root.appending(path: ".ci")
    try FileManager.default.copyItem(
      at: ownScripts.appending(path: "test"),
      to: scripts.appending(path: "test")
    )
    let swift = """
      case "$*" in
        "build --show-bin-path") echo '\(folder.path)' ;;
        *--disable-xctest) echo "✔ Test run with 3 tests in 1 suite passed after 0.1 seconds." ;;
      esac
      """
    var programs = [
      "Demo": "echo shown", "connect-swift-linuxPackageTests.xctest": xctest, "make": make, "swift": swift,
    ]
    for name in try FileManager.default.contentsOfDirectory(atPath: ownScripts.path) where name != "test" {
      programs[".ci/\(name)"] = ""
    }
    for (path, text) in programs {
      let file = folder.appending(path: path)
      try Data("#!/bin/bash\n\(text)\n".utf8).write(to: file)
      try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: file.path)
    }

    let (process, output) = try Process.start { process in
      process.executableURL = scripts.appending(path: "test")
      process.environment = ["PATH": "\(folder.path):/usr/bin:/bin"]
      let output = Pipe()
      process.standardOutput = output
      process.standardError = output
      return output
    }
    let text = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    let lines = String(decoding: text, as: UTF8.self).split(separator: "\n").map(String.init)
    return (process.terminationStatus, lines)
  }

  private static let passing = """
    echo "Test Case 'A.testOne' started at noon"
    echo "Test Case 'A.testOne' passed (0.1 seconds)"
    echo "Test Case 'A.testTwo' started at noon"
    echo "Test Case 'A.testTwo' skipped (0.1 seconds)"
    echo "Executed 2 tests, with 1 test skipped and 0 failures (0 unexpected) in 0.2 (0.2) seconds"
    """

  /// The row of a part, without the time that it took.
  private func row(_ name: String, _ lines: [String]) -> String? {
    lines.last { $0.hasPrefix("  \(name)") }?
      .replacing(#/ +\d+:\d\d/#, with: "")
      .trimmingCharacters(in: .whitespaces)
  }

  func testSummary() throws {
    let sanitized = """
      if [[ $2 == sanitize ]]; then echo "Test Case 'B.testIt' passed (1 seconds)"; fi
      if [[ $2 == build-* ]]; then echo "built ahead"; fi
      """
    let result = try self.run(make: sanitized, xctest: Self.passing)
    XCTAssertEqual(result.status, 0, "\(result.lines)")
    XCTAssertEqual(result.lines.last, "5 passed, 0 failed")
    XCTAssertEqual(self.row("style", result.lines), "style              ok")
    XCTAssertEqual(self.row("demo", result.lines), "demo               ok")
    XCTAssertEqual(self.row("address", result.lines), "address sanitizer  ok  1 test, 0 failed")
    XCTAssertEqual(self.row("Swift Testing", result.lines), "Swift Testing      ok  3 tests, 0 failed")
    XCTAssertEqual(
      self.row("XCTest", result.lines),
      "XCTest             ok  2 tests, 0 failed, 1 skipped"
    )
    XCTAssertFalse(result.lines.contains("shown"), "the demo's output is no part of the tests'")
    XCTAssertFalse(result.lines.contains("built ahead"), "nor what is built while the tests run")
    let executed = try XCTUnwrap(result.lines.firstIndex { $0.hasPrefix("Executed 2 tests") })
    let summary = try XCTUnwrap(result.lines.firstIndex { $0.hasPrefix("Summary, after 0:") })
    XCTAssertEqual(result.lines[(executed + 1)..<summary], ["Test Case 'B.testIt' passed (1 seconds)"])
  }

  /// What is built while the tests run ends with the script.
  func testWhatIsBuiltAheadEnds() throws {
    let file = FileManager.default.temporaryDirectory.appending(path: "build-\(UUID())")
    defer { try? FileManager.default.removeItem(at: file) }
    let building = """
      if [[ "$*" == *"build-sanitized bench-build" ]]; then
        trap "echo ended >'\(file.path)'; exit" TERM
        echo begun >'\(file.path)'
        sleep 60
      fi
      """
    let failing = """
      for ((i = 0; i < 1000; i++)); do
        if [[ -s '\(file.path)' ]]; then exit 1; fi
        sleep 0.01
      done
      """
    let result = try self.run(make: building, xctest: failing)
    XCTAssertEqual(self.row("XCTest", result.lines), "XCTest             FAILED")
    func text() throws -> String { try String(contentsOf: file, encoding: .utf8) }
    for _ in 0..<1000 where try text() != "ended\n" { usleep(10_000) }
    XCTAssertEqual(try text(), "ended\n")
  }

  func testFailedTests() throws {
    let failing = """
      echo "Test Case 'A.testOne' started at noon"
      echo "Test Case 'A.testOne' failed (0.1 seconds)"
      echo "Test Case 'A.testTwo' started at noon"
      echo "Test Case 'A.testTwo' passed (0.1 seconds)"
      echo "Executed 2 tests, with 7 failures (0 unexpected) in 0.2 (0.2) seconds"
      exit 1
      """
    let result = try self.run(xctest: failing)
    XCTAssertEqual(result.status, 1)
    XCTAssertEqual(result.lines.last, "4 passed, 1 failed")
    XCTAssertEqual(self.row("XCTest", result.lines), "XCTest             FAILED  2 tests, 1 failed")
  }

  /// A test in which the process crashed has failed, although nobody says so.
  func testCrash() throws {
    let crashing = """
      echo "Test Case 'A.testOne' started at noon"
      echo "Test Case 'A.testOne' passed (0.1 seconds)"
      echo "Test Case 'A.testTwo' started at noon"
      exit 1
      """
    let result = try self.run(xctest: crashing)
    XCTAssertEqual(result.status, 1)
    XCTAssertEqual(result.lines.last, "4 passed, 1 failed")
    XCTAssertEqual(self.row("XCTest", result.lines), "XCTest             FAILED  2 tests, 1 failed")
  }

  /// Nothing runs behind a part that fails, and this counts as a failure.
  func testFailedPart() throws {
    let result = try self.run(make: "if [[ $2 == lint ]]; then exit 2; fi", xctest: Self.passing)
    XCTAssertEqual(result.status, 1)
    XCTAssertEqual(result.lines.last, "0 passed, 1 failed")
    XCTAssertEqual(self.row("Python servers", result.lines), "Python servers     ok")
    XCTAssertEqual(self.row("style", result.lines), "style              FAILED")
    for part in [
      "generated code", "build", "public API", "documentation", "demo", "address sanitizer", "Swift Testing",
      "XCTest",
    ] {
      XCTAssertEqual(
        self.row(part, result.lines)?.hasSuffix("did not run"),
        true,
        "\(part): \(result.lines)"
      )
    }
  }
}
