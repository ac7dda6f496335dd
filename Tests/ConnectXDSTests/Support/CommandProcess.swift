internal import Foundation
internal import Glibc
internal import LoopbackServer
internal import Synchronization
internal import TestSupport

/// What went wrong in a test's own tools.
struct TestFailure: Error, CustomStringConvertible {
  var description: String

  init(_ description: String) {
    self.description = description
  }
}

/// A Python script of `Servers`, in a process that takes commands. The script describes them.
///
/// The process ends when its standard input is closed: by ``stop()``, or because this process has ended.
final class CommandProcess: Sendable {
  /// This package.
  static let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../..")
    .standardized

  private let process: Process
  private let input: Pipe
  private let answers: AnswerLines
  /// What the script has said when it was ready.
  private let announcement: Data
  private let count = Mutex(0)

  private init(process: Process, input: Pipe, answers: AnswerLines, announcement: Data) {
    self.process = process
    self.input = input
    self.answers = answers
    self.announcement = announcement
  }

  /// Starts a script, and waits until it is ready.
  ///
  /// - Parameter script: The path from `Servers`.
  static func start(_ script: String) async throws -> CommandProcess {
    guard FileManager.default.fileExists(atPath: self.root.appending(path: ".venv/installed").path()) else {
      throw TestFailure("the Python servers are not installed: run `make venv` in \(self.root.path())")
    }
    let (process, (input, output)) = try Process.start { process in
      process.executableURL = self.root.appending(path: ".venv/bin/python")
      let file = self.root.appending(path: "Tests/ConnectXDSTests/Servers/\(script)")
      process.arguments = ["-B", file.path()]
      // Scripts make grpcio refuse resources, which it logs.
      process.environment = ProcessInfo.processInfo.environment.merging([
        "GRPC_VERBOSITY": "NONE",
        "CONNECT_TEST_GENERATED": self.root.appending(path: ".venv/generated").path(),
        "CONNECT_TEST_LAUNCHER": self.root.appending(path: "Tests/EndToEndTests/Servers").path(),
      ]) { $1 }
      let (input, output) = (Pipe(), Pipe())
      process.standardInput = input
      process.standardOutput = output
      return (input, output)
    }
    let answers = AnswerLines(of: output.fileHandleForReading)
    do {
      // The announcement has no number.
      let announcement = try await answers.answer(to: 0)
      return CommandProcess(process: process, input: input, answers: answers, announcement: announcement)
    } catch {
      Self.kill(process)
      throw TestFailure("\(script) did not start: \(error)")
    }
  }

  /// What the script has said when it was ready.
  func announcement<Facts: Decodable>(as type: Facts.Type) throws -> Facts {
    try JSONDecoder().decode(type, from: self.announcement)
  }

  /// Sends a command, and waits for the answer.
  func command<Answer: Decodable>(_ command: JSON, as type: Answer.Type) async throws -> Answer {
    let number = self.count.withLock { count in
      count += 1
      return count
    }
    guard case .object(var fields) = command else { throw TestFailure("not an object: \(command)") }
    fields["number"] = .number(Double(number))
    var line = try JSONEncoder().encode(JSON.object(fields))
    line.append(UInt8(ascii: "\n"))
    try self.input.fileHandleForWriting.write(contentsOf: line)
    let answer = try await self.answers.answer(to: number)
    if let error = try JSONDecoder().decode(Failure.self, from: answer).error {
      throw TestFailure("\(fields["do"] ?? .null): \(error)")
    }
    return try JSONDecoder().decode(type, from: answer)
  }

  func command(_ command: JSON) async throws {
    _ = try await self.command(command, as: Failure.self)
  }

  /// Ends the process, and waits for its end.
  func stop() async {
    try? self.input.fileHandleForWriting.close()
    for _ in 0..<500 where self.process.isRunning {
      try? await Task.sleep(for: .milliseconds(10))
    }
    Self.kill(self.process)
  }

  private static func kill(_ process: Process) {
    if process.isRunning { Glibc.kill(process.processIdentifier, SIGKILL) }
    process.waitUntilExit()
  }

  private struct Failure: Decodable {
    var error: String?
  }
}

/// The lines that a script writes: each has the number of the command that it answers.
private final class AnswerLines: Sendable {
  private struct State {
    var bytes = Data()
    var answers: [Int: Data] = [:]
    var isEnded = false
  }

  private struct Number: Decodable {
    var number: Int?
  }

  private let state = Mutex(State())

  init(of handle: FileHandle) {
    handle.readOnThread { self.add($0) }
  }

  func answer(to number: Int) async throws -> Data {
    try await value("an answer of the script") {
      try self.state.withLock { state in
        let answer = state.answers.removeValue(forKey: number)
        if answer == nil, state.isEnded { throw TestFailure("the script has ended") }
        return answer
      }
    }
  }

  private func add(_ data: Data) {
    self.state.withLock { state in
      if data.isEmpty { state.isEnded = true }
      state.bytes.append(data)
      while let end = state.bytes.firstIndex(of: UInt8(ascii: "\n")) {
        let line = Data(state.bytes[..<end])
        state.bytes = Data(state.bytes[(end + 1)...])
        if let number = try? JSONDecoder().decode(Number.self, from: line) {
          state.answers[number.number ?? 0] = line
        }
      }
    }
  }
}

/// How long tests wait for what has to happen. Only broken code reaches this limit.
let patience = Duration.seconds(60)

/// Waits until there is a value.
func value<Value>(
  _ what: @autoclosure () -> String,
  within limit: Duration = patience,
  _ take: () async throws -> Value?
) async throws -> Value {
  let end = ContinuousClock.now + limit
  while true {
    if let value = try await take() { return value }
    guard ContinuousClock.now < end else { throw TestFailure("not within \(limit): \(what())") }
    try await Task.sleep(for: .milliseconds(3))
  }
}

/// Waits until `condition` holds.
func eventually(
  _ what: @autoclosure () -> String,
  within limit: Duration = patience,
  _ condition: () async throws -> Bool
) async throws {
  try await value(what(), within: limit) { try await condition() ? () : nil }
}
