public import Foundation
internal import Glibc
internal import LoopbackServer
internal import Synchronization

/// A process with pipes for its standard input, output and error. It is killed when this object is released.
public final class ChildProcess: Sendable {
  private let process: Process
  private let input: Pipe
  private let output: Pipe
  private let errorText = Mutex(Data())
  private let isErrorOver = Atomic(false)

  public init(_ executable: URL, arguments: [String] = [], environment: [String: String] = [:]) throws {
    let error: Pipe
    (self.process, (self.input, self.output, error)) = try Process.start { process in
      process.executableURL = executable
      process.arguments = arguments
      process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
      let (input, output, error) = (Pipe(), Pipe(), Pipe())
      process.standardInput = input
      process.standardOutput = output
      process.standardError = error
      return (input, output, error)
    }
    error.fileHandleForReading.readOnThread { [weak self] data in
      if data.isEmpty {
        self?.isErrorOver.store(true, ordering: .releasing)
      } else {
        self?.errorText.withLock { $0 += data }
      }
    }
  }

  /// One of this package's programs, which the build puts beside the tests.
  public convenience init(
    product: String,
    arguments: [String] = [],
    environment: [String: String] = [:]
  ) throws {
    let folder = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
    let executable = folder.appending(path: product)
    guard FileManager.default.isExecutableFile(atPath: executable.path()) else {
      throw LoopbackServerError("\(executable.path()) is not built")
    }
    try self.init(executable, arguments: arguments, environment: environment)
  }

  deinit {
    if self.process.isRunning { kill(self.process.processIdentifier, SIGKILL) }
  }

  public var isRunning: Bool { self.process.isRunning }

  /// The process's standard error so far.
  public var errorOutput: String { self.errorText.withLock { String(decoding: $0, as: UTF8.self) } }

  /// Writes to standard input, on a thread that may block.
  public func write(_ data: Data) async throws {
    let handle = self.input.fileHandleForWriting
    try await Self.onThread { try handle.write(contentsOf: data) }
  }

  public func closeInput() throws {
    try self.input.fileHandleForWriting.close()
  }

  /// The next `count` bytes of standard output; fewer at its end.
  public func read(_ count: Int) async throws -> Data {
    let handle = self.output.fileHandleForReading
    return try await Self.onThread {
      var data = Data()
      while data.count < count, let piece = try handle.read(upToCount: count - data.count), !piece.isEmpty {
        data += piece
      }
      return data
    }
  }

  /// The rest of standard output.
  public func readAll() async throws -> Data {
    let handle = self.output.fileHandleForReading
    return try await Self.onThread { try handle.readToEnd() ?? Data() }
  }

  public func signal(_ number: Int32) {
    kill(self.process.processIdentifier, number)
  }

  /// Waits for the end of the process, and for the rest of standard error.
  ///
  /// - Returns: The exit status, or the negated number of the signal that ended the process.
  /// - Throws: ``LoopbackServerError`` if the process has not ended in time.
  public func exitStatus(within limit: Duration = .seconds(30)) async throws -> Int32 {
    let deadline = ContinuousClock.now + limit
    while self.process.isRunning {
      guard ContinuousClock.now < deadline else {
        throw LoopbackServerError("the process has not ended within \(limit): \(self.errorOutput)")
      }
      try await Task.sleep(for: .milliseconds(5))
    }
    // Other processes may have inherited the pipe and keep it open.
    let patience = ContinuousClock.now + .seconds(2)
    while !self.isErrorOver.load(ordering: .acquiring), ContinuousClock.now < patience {
      try await Task.sleep(for: .milliseconds(1))
    }
    let status = self.process.terminationStatus
    return self.process.terminationReason == .uncaughtSignal ? -status : status
  }

  private static func onThread<Value: Sendable>(
    _ body: @escaping @Sendable () throws -> Value
  ) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
      Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
    }
  }
}
