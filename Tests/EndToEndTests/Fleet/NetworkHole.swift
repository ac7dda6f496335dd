internal import Foundation
internal import LoopbackServer
internal import XCTest

/// A network namespace that is joined to this one by a wire, and can stop answering: what is sent there arrives, and
/// nothing comes back.
struct NetworkHole {
  /// The address of the other side.
  let address: String
  /// Runs the rest of its arguments in the namespace.
  let launcher: [String]
  private let name: String
  private let ownAddress: String

  /// - Throws: `XCTSkip` where the kernel, or the lack of rights, refuses it.
  static func make() throws -> NetworkHole {
    let hole = NetworkHole()
    do {
      try hole.build()
    } catch {
      hole.remove()
      throw XCTSkip("no network namespace can be made here: \(error)")
    }
    return hole
  }

  private init() {
    // Of 198.18.0.0/15, which is for tests of networks (RFC 2544).
    let id = ProcessInfo.processInfo.processIdentifier
    let (third, fourth) = (id / 64 % 256, id % 64 * 4)
    self.name = "hole\(id)"
    self.ownAddress = "198.18.\(third).\(fourth + 1)"
    self.address = "198.18.\(third).\(fourth + 2)"
    self.launcher = ["/usr/bin/env", "ip", "netns", "exec", self.name]
  }

  private func build() throws {
    try self.ip("netns", "add", self.name)
    try self.ip("link", "add", self.name, "type", "veth", "peer", "name", "far", "netns", self.name)
    try self.ip("address", "add", "\(self.ownAddress)/30", "dev", self.name)
    try self.ip("link", "set", self.name, "up")
    for words in [
      ["link", "set", "lo", "up"],
      ["address", "add", "\(self.address)/30", "dev", "far"],
      ["link", "set", "far", "up"],
    ] {
      try self.ip(["-n", self.name] + words)
    }
  }

  /// From now on nothing comes back.
  func stopAnswering() throws {
    try self.ip("-n", self.name, "route", "add", "blackhole", "\(self.ownAddress)/32")
  }

  func answerAgain() throws {
    try self.ip("-n", self.name, "route", "del", "blackhole", "\(self.ownAddress)/32")
  }

  /// The wire goes with the namespace, once its processes have ended.
  func remove() {
    try? self.ip("link", "del", self.name)
    try? self.ip("netns", "del", self.name)
  }

  private func ip(_ words: String...) throws { try self.ip(words) }

  private func ip(_ words: [String]) throws {
    let (process, errors) = try Process.start { process in
      process.executableURL = URL(filePath: "/usr/bin/env")
      process.arguments = ["ip"] + words
      let errors = Pipe()
      process.standardError = errors
      return errors
    }
    let text = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
      throw LoopbackServerError("ip \(words.joined(separator: " ")): \(text)")
    }
  }
}
