internal import Connect
internal import Foundation
internal import Glibc
internal import NIOCore
import XCTest

@testable import ConnectReflection

/// Programs that compile proto files.
final class ProtoCompilerTests: XCTestCase {
  func testCompilerMessages() async throws {
    try await Folders.withTemporary { folder in
      let path = folder.appending(path: "wrong.proto").path()
      try Data("syntax = \"proto3\";\nmessage A { strin b = 1; }\n".utf8).write(to: URL(filePath: path))
      await expectError(.invalidArgument, "wrong.proto:2:13", "strin") {
        try await ProtoFileSet.compile([path])
      }
    }
    await expectError(.notFound, "there is no file none.proto") {
      try await ProtoFileSet.compile(["none.proto"])
    }
    await expectError(.invalidArgument, "no proto files") { try await ProtoFileSet.compile([]) }
  }

  func testNoCompiler() async throws {
    await expectError(.failedPrecondition, "install protoc") { try ProtoCompiler.find(in: "/nowhere") }
  }

  /// A compiler that is this script.
  private func compiler(_ script: String, named name: String = "protoc", in folder: URL) throws
    -> ProtoCompiler
  {
    let program = folder.appending(path: name)
    try Data("\(script)\n".utf8).write(to: program)
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: program.path())
    return try ProtoCompiler.find(in: folder.path())
  }

  func testCancelledCompiler() async throws {
    try await Folders.withTemporary { folder in
      let number = folder.appending(path: "number")
      let script =
        "#!/bin/sh\necho $$ >\(number.path()).new\nmv \(number.path()).new \(number.path())\nexec sleep 600"
      let compiler = try self.compiler(script, in: folder)
      let task = Task { try await compiler.compile() }
      var process: pid_t?
      for _ in 0..<30_000 where process == nil {
        try await Task.sleep(for: .milliseconds(2))
        process = (try? String(contentsOf: number, encoding: .utf8)).flatMap { pid_t($0.dropLast()) }
      }
      task.cancel()
      await expectError(.canceled) { try await task.value }
      XCTAssertEqual(kill(try XCTUnwrap(process), 0), -1, "it still runs")
      try FileManager.default.removeItem(at: number)
      let early = Task {
        withUnsafeCurrentTask { $0?.cancel() }
        return try await compiler.compile()
      }
      await expectError(.canceled) { try await early.value }
      XCTAssertFalse(FileManager.default.fileExists(atPath: number.path()), "it has run")
    }
  }

  /// Of what a compiler says, 64 KiB are kept.
  func testLongCompilerMessages() async throws {
    try await Folders.withTemporary { folder in
      let compiler = try self.compiler(
        "#!/bin/sh\nhead -c 300000 /dev/zero | tr '\\0' x >&2\nexit 1",
        in: folder
      )
      do {
        _ = try await compiler.compile()
        XCTFail("it fails")
      } catch let error as ConnectError {
        XCTAssertEqual(error.message, "protoc: " + String(repeating: "x", count: 65_536))
      }
    }
  }

  func testCompilerThatCannotRun() async throws {
    try await Folders.withTemporary { folder in
      let compiler = try self.compiler("#!/does/not/exist", in: folder)
      await expectError(.failedPrecondition, "cannot run \(compiler.path): it, or the program") {
        try await compiler.compile()
      }
    }
  }

  func testCompilerThatEndsWithoutAMessage() async throws {
    try await Folders.withTemporary { folder in
      let failing = try self.compiler("#!/bin/sh\nexit 3", in: folder)
      await expectError(.invalidArgument, "protoc: it failed without a message") {
        try await failing.compile()
      }
      let killed = try self.compiler("#!/bin/sh\nkill -9 $$", in: folder)
      await expectError(.internalError, "signal 9 has ended \(killed.path)") { try await killed.compile() }
    }
  }

  /// It does not wait for what the compiler has started.
  func testProcessesOfTheCompiler() async throws {
    try await Folders.withTemporary { folder in
      let number = folder.appending(path: "number")
      let script = "#!/bin/sh\nsleep 100 &\necho $! >\(number.path())\necho wrong >&2\nexit 1"
      let compiler = try self.compiler(script, in: folder)
      let begin = ContinuousClock.now
      await expectError(.invalidArgument, "protoc: wrong") { try await compiler.compile() }
      let process = try XCTUnwrap(pid_t(String(contentsOf: number, encoding: .utf8).dropLast()))
      kill(process, SIGKILL)
      XCTAssertLessThan(ContinuousClock.now - begin, .seconds(100))
    }
  }

  func testBuf() async throws {
    try await Folders.withTemporary { folder in
      let arguments = folder.appending(path: "arguments")
      let script = "#!/bin/sh\nprintf '%s\\n' \"$@\" >\(arguments.path())\necho no buf >&2\nexit 1"
      let compiler = try self.compiler(script, named: "buf", in: folder)
      XCTAssertEqual(compiler.kind, .buf)
      let file = "connect/test/v1/test.proto"
      await expectError(.invalidArgument, "buf: no buf") {
        try await compiler.compile([file], importPaths: [Folders.protos])
      }
      let lines = try String(contentsOf: arguments, encoding: .utf8).split(separator: "\n")
      XCTAssertEqual(lines.prefix(3), ["build", Substring(Folders.protos), "--as-file-descriptor-set"])
      XCTAssertEqual(lines.suffix(2), ["--path", "\(Folders.protos)/\(file)"])
    }
  }
}

extension ProtoCompiler {
  fileprivate func compile() async throws -> ByteBuffer {
    try await self.compile(["connect/test/v1/test.proto"], importPaths: [Folders.protos])
  }
}
