internal import Foundation

/// Lines on standard error, the only place for them: standard output belongs to the runner.
enum Log {
  static func write(_ line: String) {
    // In one piece, so that lines of concurrent tasks do not mix.
    try? FileHandle.standardError.write(contentsOf: Data((line + "\n").utf8))
  }
}
