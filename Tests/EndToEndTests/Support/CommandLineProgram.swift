internal import Foundation
internal import Glibc
internal import LoopbackServer
internal import TestSupport
internal import XCTest

/// The output and the exit code of the program `connectrpc`.
struct ProgramOutput: Equatable {
  var text: String
  var error: String
  var status: Int32

  var lines: [String] { self.text.split(separator: "\n").map(String.init) }
}

enum CommandLineProgram {
  /// The path of `connectrpc`, which the build puts beside the tests.
  static var path: String {
    URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().appending(path: "connectrpc")
      .path(percentEncoded: false)
  }
}

extension XCTestCase {
  /// Runs `connectrpc` until it ends.
  func connectrpc(_ arguments: String..., input: String = "") async throws -> ProgramOutput {
    try await self.connectrpc(arguments, input: input)
  }

  func connectrpc(_ arguments: [String], input: String = "") async throws -> ProgramOutput {
    let process = try ChildProcess(
      product: "connectrpc",
      arguments: arguments,
      environment: ["NO_COLOR": "1"]
    )
    try? await process.write(Data(input.utf8))
    try process.closeInput()
    let text = String(decoding: try await process.readAll(), as: UTF8.self)
    let status = try await process.exitStatus(within: .seconds(60))
    return ProgramOutput(text: text, error: process.errorOutput, status: status)
  }

  /// The URL of a server with reflection, at a port of ``PythonServer/Script/reflection``.
  func reflecting(_ port: String = "both") async throws -> String {
    "http://127.0.0.1:\(try await PythonServer.shared(.reflection).port(port))"
  }

  /// A file with this text, which is removed when the test ends.
  func temporaryFile(_ text: String) throws -> String {
    let path = FileManager.default.temporaryDirectory.appending(path: "\(UUID()).pem").path()
    try text.write(toFile: path, atomically: true, encoding: .utf8)
    self.addTeardownBlock { try? FileManager.default.removeItem(atPath: path) }
    return path
  }

  /// A descriptor set of the test service, made by protoc.
  func descriptorSet() async throws -> String {
    let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../..").standardized
    let file = FileManager.default.temporaryDirectory.appending(path: "\(UUID()).binpb").path()
    self.addTeardownBlock { try? FileManager.default.removeItem(atPath: file) }
    let protoc = try ChildProcess(
      URL(filePath: "/usr/bin/env"),
      arguments: [
        "protoc", "--include_imports", "--descriptor_set_out=\(file)", "-I",
        root.appending(path: "Protos").path(),
        "connect/test/v1/test.proto",
      ]
    )
    let status = try await protoc.exitStatus()
    XCTAssertEqual(status, 0, protoc.errorOutput)
    return file
  }
}

/// The JSON objects of a text, without the server's observations of each client.
func jsonObjects(in data: Data) throws -> [NSDictionary] {
  // The objects follow each other, on one line or on several.
  let text = String(decoding: data, as: UTF8.self).split(separator: "\n").joined()
  let array = "[" + text.replacing(/\}\s*\{/, with: "},{") + "]"
  let objects = try JSONSerialization.jsonObject(with: Data(array.utf8)) as? [[String: Any]]
  return try XCTUnwrap(objects).map { object in
    var object = object
    object["seen"] = nil
    return object as NSDictionary
  }
}

/// `connectrpc record` or `connectrpc replay`, while it listens.
struct ListeningProgram {
  let process: ChildProcess
  /// The URL that the program listens on.
  let url: String

  static func start(_ arguments: String...) async throws -> ListeningProgram {
    let process = try ChildProcess(
      product: "connectrpc",
      arguments: arguments,
      environment: ["NO_COLOR": "1"]
    )
    var url: String?
    try await eventually("\(arguments) listens: \(process.errorOutput)") {
      url = process.errorOutput.firstMatch(of: /listening on (http:\/\/[^ ,\n]+)/).map { String($0.1) }
      return url != nil || !process.isRunning
    }
    guard let url else { throw LoopbackServerError("\(arguments): \(process.errorOutput)") }
    return ListeningProgram(process: process, url: url)
  }

  /// Sends a signal, and waits for the end.
  func stop(_ signal: Int32 = SIGTERM) async throws -> ProgramOutput {
    self.process.signal(signal)
    return try await self.end()
  }

  /// Waits until it ends.
  func end() async throws -> ProgramOutput {
    let status = try await self.process.exitStatus(within: patience)
    return ProgramOutput(text: "", error: self.process.errorOutput, status: status)
  }
}
