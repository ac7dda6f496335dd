internal import Foundation
internal import Glibc
internal import LoopbackServer
internal import XCTest

/// `Process.start`, by which tests start other processes.
final class ProcessStartTests: XCTestCase {
  /// None inherits what another one has, and the end of each is noticed, although the others go on.
  func testManyAtTheSameMoment() async throws {
    for round in 0..<20 {
      let starts = (0..<10).map { _ in
        Task {
          try Process.start { process in
            process.executableURL = URL(filePath: "/bin/sleep")
            process.arguments = ["60"]
            let (input, output) = (Pipe(), Pipe())
            process.standardInput = input
            process.standardOutput = output
            return (input, output)
          }
        }
      }
      var processes: [Process] = []
      defer {
        for process in processes { kill(process.processIdentifier, SIGKILL) }
      }
      for start in starts { processes.append(try await start.value.process) }
      let descriptors = try processes.flatMap { process in
        let folder = "/proc/\(process.processIdentifier)/fd"
        return try FileManager.default.contentsOfDirectory(atPath: folder).filter { Int($0) ?? 0 > 2 }
          .compactMap { try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\($0)") }
          .filter { $0.hasPrefix("pipe:") || $0.hasPrefix("socket:") }
      }
      XCTAssertEqual(Set(descriptors).count, descriptors.count, "several have the same: \(descriptors)")
      while let process = processes.last {
        kill(process.processIdentifier, SIGKILL)
        try await eventually("process \(processes.count) of round \(round) ends", within: .seconds(20)) {
          !process.isRunning
        }
        processes.removeLast()
      }
    }
  }
}
