internal import Foundation
internal import LoopbackServer
internal import TestSupport
internal import XCTest

/// What `make install` puts in place.
final class CommandLineInstallTests: XCTestCase {
  private static let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..")
    .standardized

  /// With the program of the tests in place of a release build.
  func testInstall() async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "install \(UUID())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    self.addTeardownBlock { try? FileManager.default.removeItem(at: folder) }
    let build = URL(filePath: CommandLineProgram.path).deletingLastPathComponent().path()
    let release = try self.temporaryFile(
      "for word; do case $word in --show-bin-path) echo '\(build)';; esac; done"
    )
    let make = try ChildProcess(
      URL(filePath: "/usr/bin/env"),
      arguments: [
        "-u", "MAKEFLAGS", "-u", "MAKELEVEL", "make", "--no-print-directory", "-C", Self.root.path(),
        "install", "release=sh \(release)",
        "DESTDIR=\(folder.path(percentEncoded: false))", "prefix=/opt/connect",
      ]
    )
    let status = try await make.exitStatus(within: .seconds(120))
    XCTAssertEqual(status, 0, make.errorOutput)
    let prefix = folder.appending(path: "opt/connect")
    for (path, part) in [
      ("share/bash-completion/completions/connectrpc", "doctor"),
      ("share/bash-completion/completions/connectrpc", "whatif"),
      ("share/zsh/site-functions/_connectrpc", "doctor"),
      ("share/fish/vendor_completions.d/connectrpc.fish", "doctor"),
      ("share/man/man1/connectrpc.1", ".Nm connectrpc"),
      ("share/man/man1/connectrpc.1", ".Sh WHATIF"),
    ] {
      let text = try String(contentsOf: prefix.appending(path: path), encoding: .utf8)
      XCTAssertTrue(text.contains(part), path)
    }
    let program = try ChildProcess(prefix.appending(path: "bin/connectrpc"), arguments: ["--version"])
    let end = try await program.exitStatus(within: .seconds(60))
    XCTAssertEqual(end, 0, program.errorOutput)
  }
}
