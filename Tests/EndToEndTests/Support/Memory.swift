internal import CAllocations
internal import Foundation
internal import Glibc
internal import LoopbackServer

/// The memory of this process.
enum Memory {
  /// The resident memory, in bytes.
  static func resident() throws -> Int {
    let text = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
    let fields = text.split(separator: " ")
    guard fields.count > 1, let pages = Int(fields[1]) else {
      throw LoopbackServerError("/proc/self/statm has another format: \(text)")
    }
    return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
  }

  /// The number of times that ``growth(of:_:)`` runs its body.
  static let rounds = 6

  /// The number of bytes that each repetition leaks: the median over all rounds. Caches fill in the first round, and
  /// memory that is kept for a while shows in one later round. A leak shows in every round.
  static func growth(of count: Int, _ body: (_ count: Int) async throws -> Void) async throws -> Double {
    try await body(count)
    var growths: [Int] = []
    for _ in 1..<self.rounds {
      let before = allocations_bytes()
      try await body(count)
      growths.append(Int(allocations_bytes()) - Int(before))
    }
    print("\(count) repetitions leave \(growths) bytes behind")
    return Double(growths.sorted()[growths.count / 2]) / Double(count)
  }

  /// `bytes` in a readable unit.
  static func mebibytes(_ bytes: Int) -> String {
    "\((Double(bytes) / Double(1 << 20) * 10).rounded() / 10) MiB"
  }
}
