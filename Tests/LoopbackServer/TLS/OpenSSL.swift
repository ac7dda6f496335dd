internal import Foundation

/// The `openssl` command, in a temporary folder.
struct OpenSSL {
  private let folder: URL

  /// The folder is removed at the end.
  static func run<R>(_ body: (OpenSSL) async throws -> R) async throws -> R {
    let folder = FileManager.default.temporaryDirectory.appending(path: "connect-tls-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    return try await body(OpenSSL(folder: folder))
  }

  func read(_ name: String) throws -> String {
    try String(contentsOf: self.folder.appending(path: name), encoding: .utf8)
  }

  func write(_ text: String, to name: String) throws {
    try text.write(to: self.folder.appending(path: name), atomically: true, encoding: .utf8)
  }

  func callAsFunction(_ arguments: [String]) async throws {
    let status = try await withCheckedThrowingContinuation { (done: CheckedContinuation<Int32, any Error>) in
      do {
        _ = try Process.start { process in
          process.executableURL = URL(filePath: "/usr/bin/env")
          process.arguments = ["openssl"] + arguments
          process.currentDirectoryURL = self.folder
          process.standardInput = FileHandle.nullDevice
          process.standardOutput = FileHandle.nullDevice
          process.standardError = FileHandle.nullDevice
          process.terminationHandler = { done.resume(returning: $0.terminationStatus) }
        }
      } catch {
        done.resume(throwing: error)
      }
    }
    guard status == 0 else {
      throw LoopbackServerError("openssl failed (status \(status)): \(arguments.joined(separator: " "))")
    }
  }
}
