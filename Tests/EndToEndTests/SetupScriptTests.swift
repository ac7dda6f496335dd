import Foundation
import LoopbackServer
import XCTest

/// `.ci/setup`, which says what a machine lacks.
final class SetupScriptTests: XCTestCase {
  /// Runs the script as one who may not install anything, on a machine where pkg-config finds no library.
  private func run(_ arguments: [String]) throws -> (status: Int32, error: String) {
    let folder = FileManager.default.temporaryDirectory.appending(path: "setup-\(UUID())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    for tool in ["bash", "echo", "mktemp", "rm", "xargs", "id", "pkg-config"] {
      let path = try XCTUnwrap(
        ["/usr/bin", "/bin"].map { "\($0)/\(tool)" }.first(where: FileManager.default.fileExists)
      )
      try FileManager.default.createSymbolicLink(atPath: "\(folder.path)/\(tool)", withDestinationPath: path)
    }
    // It only has to be there.
    try FileManager.default.createSymbolicLink(
      atPath: "\(folder.path)/swift",
      withDestinationPath: "/bin/true"
    )

    var root = URL(filePath: #filePath)
    for _ in 0..<3 { root.deleteLastPathComponent() }
    let (process, errors) = try Process.start { process in
      process.executableURL = URL(filePath: "/bin/bash")
      process.arguments = [root.appending(path: ".ci/setup").path] + arguments
      process.environment = ["PATH": folder.path, "PKG_CONFIG_LIBDIR": folder.path]
      let errors = Pipe()
      process.standardError = errors
      process.standardOutput = FileHandle.nullDevice
      return errors
    }
    let text = try errors.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    return (process.terminationStatus, String(decoding: text, as: UTF8.self))
  }

  func testNamesTheMissingLibraries() throws {
    let result = try self.run(["build"])
    XCTAssertEqual(result.status, 1)
    XCTAssertEqual(
      result.error,
      """
      System packages are missing. On Debian, run as root:
        apt-get update && apt-get install --yes --no-install-recommends zlib1g-dev libnghttp2-dev libprotobuf-c-dev \
      libngtcp2-dev libngtcp2-crypto-gnutls-dev libnghttp3-dev libgnutls28-dev

      """
    )
  }

  /// It needs neither HTTP/3 nor a compiler for proto files.
  func testNamesWhatTheDemoNeeds() throws {
    let result = try self.run(["demo"])
    XCTAssertEqual(result.status, 1)
    XCTAssertTrue(
      result.error.hasSuffix("--no-install-recommends zlib1g-dev libnghttp2-dev libprotobuf-c-dev\n"),
      result.error
    )
  }

  func testNamesWhatTheTestsNeedBesides() throws {
    let result = try self.run([])
    XCTAssertEqual(result.status, 1)
    for package in ["zlib1g-dev", "libnghttp2-dev", "protobuf-compiler", "python3-venv"] {
      XCTAssertTrue(result.error.contains(package), result.error)
    }
  }

  /// The compiler names the package of a library that is missing: where its header cannot be found, an error says it,
  /// behind all other output. SwiftPM's own hint comes in front.
  func testCompilerNamesTheMissingLibrary() throws {
    var sources = URL(filePath: #filePath)
    for _ in 0..<3 { sources.deleteLastPathComponent() }
    sources.append(path: "Sources")
    let packages = [
      "CBrotli": "libbrotli-dev", "CNghttp2": "libnghttp2-dev", "CProtobufC": "libprotobuf-c-dev",
      "CSnappy": "libsnappy-dev", "CZlib": "zlib1g-dev", "CZstd": "libzstd-dev",
      "CGnuTLS": "libgnutls28-dev", "CNghttp3": "libnghttp3-dev",
      "CNgtcp2": "libngtcp2-dev libngtcp2-crypto-gnutls-dev libgnutls28-dev",
    ]
    for (module, package) in packages {
      let (process, errors) = try Process.start { process in
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = [
          "clang", "-fsyntax-only", "-nostdinc", "-x", "c", sources.appending(path: "\(module)/shim.h").path,
        ]
        let errors = Pipe()
        process.standardError = errors
        return errors
      }
      let text = String(decoding: try errors.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
      process.waitUntilExit()
      XCTAssertNotEqual(process.terminationStatus, 0, module)
      XCTAssertTrue(
        text.contains("is missing; on Debian: apt-get install \(package)\""),
        "\(module): \(text)"
      )
      XCTAssertTrue(text.contains("1 error generated"), "\(module): \(text)")
    }
  }
}
