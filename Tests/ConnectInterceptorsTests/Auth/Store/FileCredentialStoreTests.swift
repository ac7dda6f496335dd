import Connect
import ConnectInterceptors
import ConnectTesting
import Foundation
import Glibc
import LoopbackServer
import XCTest

/// A file of credentials: who may read it, and what becomes of it when it is broken.
final class FileCredentialStoreTests: XCTestCase {
  private static let token = StoredToken(
    AccessToken("t", refreshToken: "r"),
    expiry: .seconds(1),
    login: "me"
  )

  private func expectError(
    _ code: Code,
    _ parts: String...,
    line: UInt = #line,
    from body: () async throws -> Void
  ) async {
    do {
      try await body()
      XCTFail("no error", line: line)
    } catch {
      let error = error as? ConnectError
      XCTAssertEqual(error?.code, code, "\(error?.message ?? "")", line: line)
      for part in parts {
        XCTAssertEqual(
          error?.message?.contains(part),
          true,
          "\(error?.message ?? "") has no '\(part)'",
          line: line
        )
      }
    }
  }

  func testSaveLoadClear() async throws {
    let folder = try TemporaryFolder()
    let store = FileCredentialStore(path: folder.file)
    let missing = try await store.load()
    XCTAssertNil(missing)
    try await store.clear()
    try await store.save(Self.token)
    let read = try await FileCredentialStore(path: folder.file).load()
    XCTAssertEqual(read, Self.token)
    XCTAssertEqual(try folder.mode(of: folder.file), 0o600)
    XCTAssertEqual(folder.names, ["credentials.json"])
    try await store.clear()
    let cleared = try await store.load()
    XCTAssertNil(cleared)
    XCTAssertEqual(folder.names, [])
  }

  func testMissingFoldersAreCreatedForTheirOwnerAlone() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/a/b/c.json"
    let store = FileCredentialStore(path: path)
    let missing = try await store.load()
    XCTAssertNil(missing)
    XCTAssertEqual(folder.names, [])
    try await store.save(Self.token)
    XCTAssertEqual(try folder.mode(of: folder.path + "/a"), 0o700)
    XCTAssertEqual(try folder.mode(of: folder.path + "/a/b"), 0o700)
    let read = try await store.load()
    XCTAssertEqual(read, Self.token)
  }

  func testFilesThatOthersMayUseAreRefused() async throws {
    for mode in [0o640, 0o604, 0o620, 0o602, 0o610, 0o601, 0o644, 0o777] {
      let folder = try TemporaryFolder()
      try folder.write(Self.token.encoded, mode: mode)
      let store = FileCredentialStore(path: folder.file)
      await self.expectError(.failedPrecondition, "chmod 600", folder.file, "0\(String(mode, radix: 8))") {
        _ = try await store.load()
      }
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: folder.file)
      let read = try await store.load()
      XCTAssertEqual(read, Self.token)
    }
  }

  func testFileOfAnotherUserIsRefused() async throws {
    guard geteuid() == 0 else { throw XCTSkip("only root may give files away") }
    let folder = try TemporaryFolder()
    try folder.write(Self.token.encoded)
    XCTAssertEqual(chown(folder.file, 4711, 0), 0)
    await self.expectError(.failedPrecondition, "4711", "chown") {
      _ = try await FileCredentialStore(path: folder.file).load()
    }
  }

  func testOtherKindsOfFilesAreRefused() async throws {
    let folder = try TemporaryFolder()
    try folder.write(Self.token.encoded)
    let link = folder.path + "/link"
    XCTAssertEqual(symlink(folder.file, link), 0)
    let linked = FileCredentialStore(path: link)
    await self.expectError(.failedPrecondition, "symbolic link") { _ = try await linked.load() }
    await self.expectError(.failedPrecondition, "symbolic link") { try await linked.save(Self.token) }
    let dangling = folder.path + "/dangling"
    XCTAssertEqual(symlink(folder.path + "/nothing", dangling), 0)
    await self.expectError(.failedPrecondition, "symbolic link") {
      _ = try await FileCredentialStore(path: dangling).load()
    }
    let pipe = folder.path + "/pipe"
    XCTAssertEqual(mkfifo(pipe, 0o600), 0)
    await self.expectError(.failedPrecondition, "regular file") {
      _ = try await FileCredentialStore(path: pipe).load()
    }
    await self.expectError(.failedPrecondition, "regular file") {
      _ = try await FileCredentialStore(path: folder.path).load()
    }
    await self.expectError(.failedPrecondition, "cannot be written") {
      try await FileCredentialStore(path: folder.path).save(Self.token)
    }
    await self.expectError(.failedPrecondition, "cannot be read") {
      _ = try await FileCredentialStore(path: folder.file + "/below").load()
    }
    await self.expectError(.failedPrecondition, "cannot be written") {
      try await FileCredentialStore(path: folder.file + "/below").save(Self.token)
    }
    for path in ["", "/", folder.path + "/", "a\0b", String(repeating: "x", count: 5000)] {
      await self.expectError(.failedPrecondition) { _ = try await FileCredentialStore(path: path).load() }
      await self.expectError(.failedPrecondition) {
        try await FileCredentialStore(path: path).save(Self.token)
      }
    }
    // Nor is there a lock for them in the working folder.
    for name in [".lock", "a", "a.lock"] {
      XCTAssertFalse(FileManager.default.fileExists(atPath: name), name)
    }
  }

  func testBrokenFilesAreErrorsAndStay() async throws {
    let folder = try TemporaryFolder()
    let store = FileCredentialStore(path: folder.file)
    let whole = Self.token.encoded
    for text in ["", "{", String(whole.dropLast()), "null", String(repeating: " ", count: 300_000)] {
      try folder.write(text)
      await self.expectError(.dataLoss, folder.file) { _ = try await store.load() }
      XCTAssertEqual(try String(contentsOfFile: folder.file, encoding: .utf8), text)
    }
    try Data([0x7b, 0xff, 0x7d]).write(to: URL(filePath: folder.file))
    await self.expectError(.dataLoss, "UTF-8") { _ = try await store.load() }
    // A login repairs it.
    try await store.save(Self.token)
    let read = try await store.load()
    XCTAssertEqual(read, Self.token)
  }

  func testWhatCouldNotBeLoadedIsNotSaved() async throws {
    let folder = try TemporaryFolder()
    let store = FileCredentialStore(path: folder.file)
    try await store.save(Self.token)
    let huge = StoredToken(AccessToken(String(repeating: "x", count: 300_000)), expiry: nil)
    await self.expectError(.failedPrecondition, "limit") { try await store.save(huge) }
    let read = try await store.load()
    XCTAssertEqual(read, Self.token)
    XCTAssertEqual(folder.names, ["credentials.json"])
  }

  func testLeftoversOfKilledProcessesAreRemoved() async throws {
    let folder = try TemporaryFolder()
    let others = [
      ".credentials.json.xyz.tmp", ".credentials.json..tmp", ".other.json.12ab.tmp", "credentials.json.bak",
    ]
    for name in [".credentials.json.12ab.tmp", ".credentials.json.0.tmp"] + others {
      try Data("half".utf8).write(to: URL(filePath: "\(folder.path)/\(name)"))
    }
    try await FileCredentialStore(path: folder.file).save(Self.token)
    XCTAssertEqual(folder.names, (others + ["credentials.json"]).sorted())
  }

  // MARK: Locks

  func testBodiesExcludeEachOther() async throws {
    let folder = try TemporaryFolder()
    let inside = Observed(0)
    let total = Observed(0)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<16 {
        group.addTask {
          let store = FileCredentialStore(path: folder.file, lockTimeout: .seconds(60))
          try await store.exclusively {
            XCTAssertEqual(
              inside.update {
                $0 += 1; return $0
              },
              1
            )
            // As a body does.
            _ = try await store.load()
            try await store.save(Self.token)
            try await FileCredentialStore(path: folder.file).save(Self.token)
            inside.update { $0 -= 1 }
            total.update { $0 += 1 }
          }
        }
      }
      try await group.waitForAll()
    }
    XCTAssertEqual(total.value, 16)
    XCTAssertEqual(folder.names, ["credentials.json"])
  }

  func testProcessThatHangsDoesNotLockOthersOutForever() async throws {
    let folder = try TemporaryFolder()
    let descriptor = open(folder.file + ".lock", O_RDWR | O_CREAT, 0o600)
    XCTAssertEqual(flock(descriptor, LOCK_EX), 0)
    defer { close(descriptor) }
    let executor = VirtualExecutor()
    let store = FileCredentialStore(path: folder.file, lockTimeout: .seconds(10), clock: executor.clock)
    let time = try await executor.lettingTimePass {
      try await store.save(Self.token)
      return executor.now
    }
    XCTAssertGreaterThanOrEqual(time, .seconds(10))
    XCTAssertLessThan(time, .seconds(11))
    let read = try await store.load()
    XCTAssertEqual(read, Self.token)
  }

  func testCancelledWaitForTheLock() async throws {
    let folder = try TemporaryFolder()
    let descriptor = open(folder.file + ".lock", O_RDWR | O_CREAT, 0o600)
    XCTAssertEqual(flock(descriptor, LOCK_EX), 0)
    let store = FileCredentialStore(path: folder.file, lockTimeout: .seconds(3600))
    let token = Self.token
    let task = Task { () async throws -> Void in try await store.save(token) }
    task.cancel()
    let result = await task.result
    XCTAssertThrowsError(try result.get()) { XCTAssertTrue($0 is CancellationError) }
    XCTAssertEqual(folder.names, [])
    close(descriptor)
    try await store.save(Self.token)
  }

  func testReadOnlyFolder() async throws {
    // Root may write everywhere but there.
    await self.expectError(.failedPrecondition, "cannot be written") {
      try await FileCredentialStore(path: "/proc/credentials.json").save(Self.token)
    }
    guard geteuid() != 0 else { return }
    let folder = try TemporaryFolder()
    try folder.write(Self.token.encoded)
    XCTAssertEqual(chmod(folder.path, 0o500), 0)
    defer { chmod(folder.path, 0o700) }
    let store = FileCredentialStore(path: folder.file)
    let read = try await store.exclusively { try await store.load() }
    XCTAssertEqual(read, Self.token)
    await self.expectError(.failedPrecondition, "cannot be written") { try await store.save(Self.token) }
  }
}
