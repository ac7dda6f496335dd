internal import Connect
internal import Foundation
internal import Subprocess

#if canImport(System)
internal import System
#else
internal import SystemPackage
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

  private let path: String
  private let arguments: [String]

  init(_ path: String, _ arguments: [String]) {
    self.path = path
    self.arguments = arguments
  }

  /// Cancelling the task kills the program.
  func run() async throws -> Result {
    try Task.checkCancellation()
    var options = PlatformOptions()
    // A group of its own, which Ctrl-C does not reach.
    options.processGroupID = 0
    do {
      let result = try await Subprocess.run(
        .path(FilePath(self.path)),
        arguments: Arguments(self.arguments),
        platformOptions: options,
        input: .none,
        output: .discarded,
        error: .sequence
      ) { program in
        var text: [UInt8] = []
        for try await piece in program.standardError {
          piece.withUnsafeBytes { text += $0.prefix(Self.mostErrors - text.count) }
        }
        return text
      }
      try Task.checkCancellation()
      if case .signaled(let signal) = result.terminationStatus {
        throw ConnectError(code: .internalError, message: "signal \(signal) has ended \(self.path)")
      }
      let errors = String(decoding: result.closureResult, as: UTF8.self)
        .trimmingCharacters(in: .whitespacesAndNewlines)
      return Result(
        isSuccess: result.terminationStatus.isSuccess,
        errors: errors.isEmpty ? "it failed without a message" : errors
      )
    } catch let error as SubprocessError {
      try Task.checkCancellation()
      let problem =
        error.code == .executableNotFound
        ? "it, or the program that its first line names, is missing or cannot be executed" : "\(error)"
      throw ConnectError(
        code: .failedPrecondition,
        message: "cannot run \(self.path): \(problem)",
        exception: error
      )
    }
  }
}
