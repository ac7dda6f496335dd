internal import Foundation
internal import Glibc
internal import LoopbackServer

/// The memory of this process.
enum Memory {
  /// What is resident, in bytes.
  static func resident() throws -> Int {
    let text = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
    let fields = text.split(separator: " ")
    guard fields.count > 1, let pages = Int(fields[1]) else {
      throw LoopbackServerError("/proc/self/statm has another format: \(text)")
    }
    return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
  }

  /// `bytes` for people.
  static func mebibytes(_ bytes: Int) -> String {
    "\((Double(bytes) / Double(1 << 20) * 10).rounded() / 10) MiB"
  }
}
