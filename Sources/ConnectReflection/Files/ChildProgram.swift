internal import Connect
internal import Foundation

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif

/// Runs an installed program until it ends.
struct ChildProgram {
  struct Result: Sendable {
    var isSuccess: Bool
    /// The program's standard error.
    var errors: String
  }

  /// In bytes. The rest of standard error is dropped.
  private static let mostErrors = 64 * 1024

  private let process = Process()
  private let errors = Pipe()

  init(_ path: String, _ arguments: [String]) {
    self.process.executableURL = URL(filePath: path)
    self.process.arguments = arguments
    self.process.standardInput = FileHandle.nullDevice
    self.process.standardOutput = FileHandle.nullDevice
    self.process.standardError = self.errors
  }

  /// Cancelling the task ends the program.
  func run() async throws -> Result {
    do {
      try self.process.run()
    } catch {
      throw ConnectError(
        code: .failedPrecondition,
        message: "cannot run \(self.process.executableURL?.path(percentEncoded: false) ?? ""): \(error)",
        exception: error
      )
    }
    return try await withTaskCancellationHandler {
      let result = await withCheckedContinuation { continuation in
        // Waiting blocks a thread, which must not be a thread of the concurrency pool.
        Thread.detachNewThread { [process, errors] in
          let result = Self.end(of: process, errors.fileHandleForReading)
          continuation.resume(returning: result)
        }
      }
      try Task.checkCancellation()
      return result
    } onCancel: { [process] in
      // SIGTERM would not work: the program inherits the signal mask of a concurrency thread, which blocks SIGTERM.
      if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    }
  }

  private static func end(of process: Process, _ errors: FileHandle) -> Result {
    var text = Data()
    while let piece = try? errors.read(upToCount: 4096), !piece.isEmpty {
      text += piece.prefix(self.mostErrors - text.count)
    }
    process.waitUntilExit()
    let isSuccess = process.terminationReason == .exit && process.terminationStatus == 0
    let message = String(decoding: text, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    return Result(isSuccess: isSuccess, errors: message.isEmpty ? "it failed without a message" : message)
  }
}
