import ConnectInterceptors
import Foundation

/// A folder for a test, removed with this object.
final class TemporaryFolder: Sendable {
  let path = NSTemporaryDirectory() + "/connect-credentials-\(UUID().uuidString)"

  init() throws {
    try FileManager.default.createDirectory(atPath: self.path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: self.path) }

  /// The usual path of a file of credentials.
  var file: String { self.path + "/credentials.json" }

  /// What is in the folder, but for locks.
  var names: [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: self.path)) ?? []).filter {
      !$0.hasSuffix(".lock")
    }
    .sorted()
  }

  func write(_ text: String, mode: Int = 0o600) throws {
    try Data(text.utf8).write(to: URL(filePath: self.file))
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: self.file)
  }

  func mode(of path: String) throws -> Int? {
    try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
  }
}
