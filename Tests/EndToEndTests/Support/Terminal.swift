internal import Foundation
internal import Glibc
internal import LoopbackServer

/// A pseudo-terminal that runs a program.
final class Terminal {
  private let master: Int32
  private let name: String
  private let output: OutputBox

  /// - Parameter columns: The terminal's width; 0 for a terminal that does not report its width.
  init(columns: UInt16 = 0) throws {
    // The ioctls of posix_openpt(3), unlockpt(3) and ptsname(3), which the module Glibc lacks.
    let (setLock, getNumber) = (UInt(0x4004_5431), UInt(0x8004_5430))
    self.master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
    var unlocked: Int32 = 0
    var number: Int32 = 0
    guard self.master >= 0, ioctl(self.master, setLock, &unlocked) == 0,
      ioctl(self.master, getNumber, &number) == 0
    else { throw LoopbackServerError("no pseudo-terminal") }
    var size = winsize(ws_row: 0, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
    guard ioctl(self.master, UInt(TIOCSWINSZ), &size) == 0 else { throw LoopbackServerError("no size") }
    self.name = "/dev/pts/\(number)"
    self.output = OutputBox()
  }

  deinit { close(self.master) }

  var text: String { self.output.text }

  /// - Parameter environment: What differs from the environment of the tests; nil for variables that are not set.
  func run(
    _ product: String,
    _ arguments: [String],
    environment: [String: String?] = [:]
  ) throws -> Process {
    let (process, _) = try Process.start { process in
      let slave = open(self.name, O_RDWR | O_NOCTTY)
      guard slave >= 0 else { throw LoopbackServerError("cannot open \(self.name)") }
      let handle = FileHandle(fileDescriptor: slave, closeOnDealloc: true)
      let folder = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
      process.executableURL = folder.appending(path: product)
      process.arguments = arguments
      var variables = ProcessInfo.processInfo.environment
      for (name, value) in environment { variables[name] = value }
      process.environment = variables
      process.standardInput = handle
      process.standardOutput = handle
      process.standardError = handle
    }
    let (master, output) = (self.master, self.output)
    Thread.detachNewThread {
      var buffer = [UInt8](repeating: 0, count: 4_096)
      while true {
        let count = read(master, &buffer, buffer.count)
        guard count > 0 else { return }
        output.append(buffer[..<count])
      }
    }
    return process
  }

  func type(_ text: String) throws {
    let bytes = Array(text.utf8)
    guard write(self.master, bytes, bytes.count) == bytes.count else {
      throw LoopbackServerError("the terminal takes no input")
    }
  }

  func waitFor(_ part: String, within limit: Duration = .seconds(30)) async throws {
    let deadline = ContinuousClock.now + limit
    while !self.output.text.contains(part) {
      guard ContinuousClock.now < deadline else {
        throw LoopbackServerError("'\(part)' did not come: \(self.output.text)")
      }
      try await Task.sleep(for: .milliseconds(10))
    }
  }
}

private final class OutputBox: @unchecked Sendable {
  private let lock = NSLock()
  private var bytes: [UInt8] = []

  var text: String { self.lock.withLock { String(decoding: self.bytes, as: UTF8.self) } }

  func append(_ bytes: ArraySlice<UInt8>) { self.lock.withLock { self.bytes += bytes } }
}
