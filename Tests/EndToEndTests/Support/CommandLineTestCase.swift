internal import Foundation
internal import LoopbackServer
internal import TestSupport
internal import XCTest

/// Tests of the program `connectrpc`, run as a process of its own.
class CommandLineTestCase: XCTestCase {
  struct Output {
    var text: String
    var error: String
    var status: Int32

    var lines: [String] { self.text.split(separator: "\n").map(String.init) }
  }

  static let service = "connect.test.v1.TestService"

  /// Runs the program to its end.
  func run(_ arguments: String..., input: String = "") async throws -> Output {
    try await self.run(arguments, input: input)
  }

  func run(_ arguments: [String], input: String = "") async throws -> Output {
    let process = try ChildProcess(
      product: "connectrpc",
      arguments: arguments,
      environment: ["NO_COLOR": "1"]
    )
    try? await process.write(Data(input.utf8))
    try process.closeInput()
    let text = String(decoding: try await process.readAll(), as: UTF8.self)
    let status = try await process.exitStatus(within: .seconds(60))
    return Output(text: text, error: process.errorOutput, status: status)
  }

  func reflecting(_ port: String = "both") async throws -> String {
    "http://127.0.0.1:\(try await PythonServer.shared(.reflection).port(port))"
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

  /// A file with this text, which goes away with the test.
  func file(_ text: String) throws -> String {
    let path = FileManager.default.temporaryDirectory.appending(path: "\(UUID()).pem").path()
    try text.write(toFile: path, atomically: true, encoding: .utf8)
    self.addTeardownBlock { try? FileManager.default.removeItem(atPath: path) }
    return path
  }
}
