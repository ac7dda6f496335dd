import Connect
import ConnectInterceptors
import Foundation
import Glibc
import TestSupport
import XCTest

/// Several processes with one file of credentials, some of which are killed while they write.
final class CredentialProcessTests: XCTestCase {
  private static let variable = "CONNECT_TEST_CREDENTIALS_FILE"

  /// A token of which no part can be missing unnoticed.
  private static func token(_ number: Int) -> StoredToken {
    StoredToken(
      AccessToken(String(repeating: "\(number % 10)", count: 20_000), refreshToken: "\(number % 10)"),
      expiry: nil,
      login: "\(getpid())"
    )
  }

  /// Not a test: what the other processes do. They are killed, or end with this process's input.
  func testWriterProcess() async throws {
    guard let path = ProcessInfo.processInfo.environment[Self.variable] else { return }
    let store = FileCredentialStore(path: path)
    for number in 0..<1_000_000 { try await store.save(Self.token(number)) }
  }

  private func start(_ path: String) throws -> ChildProcess {
    try ChildProcess(
      URL(filePath: CommandLine.arguments[0]),
      arguments: ["ConnectInterceptorsTests.CredentialProcessTests/testWriterProcess"],
      environment: [Self.variable: path]
    )
  }

  func testFileIsWholeWhateverProcessesDo() async throws {
    let folder = try TemporaryFolder()
    let store = FileCredentialStore(path: folder.file)
    var logins: Set<String> = []
    for _ in 0..<4 {
      let writers = try [self.start(folder.file), self.start(folder.file)]
      // Until both have written in this round.
      var seen: Set<String> = []
      let deadline = ContinuousClock.now + .seconds(60)
      var reads = 0
      while seen.subtracting(logins).count < 2 || reads < 50 {
        guard ContinuousClock.now < deadline else { return XCTFail("the writers do not write") }
        guard let token = try await store.load() else { continue }
        reads += 1
        seen.insert(token.login)
        XCTAssertEqual(token.token.value.utf8.count, 20_000)
        XCTAssertEqual(Set(token.token.value), Set(token.token.refreshToken ?? ""))
      }
      logins.formUnion(seen)
      for writer in writers { writer.signal(SIGKILL) }
      for writer in writers { _ = try await writer.exitStatus() }
      let left = try await store.load()
      XCTAssertNotNil(left)
    }
    XCTAssertEqual(logins.count, 8)
    // The locks of killed processes are free, and what they have left goes.
    try await store.save(Self.token(1))
    XCTAssertEqual(folder.names, ["credentials.json"])
  }
}
