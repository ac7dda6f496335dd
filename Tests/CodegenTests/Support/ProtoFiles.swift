import Foundation
import LoopbackServer
import SwiftProtobuf
import SwiftProtobufPluginLibrary
import XCTest

@testable import ConnectCodegen

typealias GeneratorRequest = Google_Protobuf_Compiler_CodeGeneratorRequest
typealias GeneratorResponse = Google_Protobuf_Compiler_CodeGeneratorResponse

/// Proto files to generate from, and the folders of the tests' files.
enum ProtoFiles {
  static let testFolder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
  static let folder = testFolder.appending(path: "Protos")

  /// protoc's request to a generator for a proto file of `Protos`.
  static func request(_ file: String, _ parameter: String = "") throws -> GeneratorRequest {
    try self.request([file], parameter, below: self.folder)
  }

  /// A protoc that knows edition 2024, from the tests' Python packages.
  static func newerProtoc() throws -> String {
    let path = Self.testFolder.appending(path: "../../.venv/bin/python-grpc-tools-protoc").standardized.path
    guard FileManager.default.isExecutableFile(atPath: path) else {
      throw ProtocFailure("the Python packages of the tests are not installed: run `make venv`")
    }
    return path
  }

  /// protoc's request for proto files with the given texts.
  static func request(
    texts: KeyValuePairs<String, String>,
    _ parameter: String = "",
    protoc: String = "protoc"
  ) throws -> GeneratorRequest {
    let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    defer { try? FileManager.default.removeItem(at: folder) }
    for (name, text) in texts {
      let url = folder.appending(path: name)
      try FileManager.default.createDirectory(
        at: url.deletingLastPathComponent(),
        withIntermediateDirectories: true
      )
      try Data(text.utf8).write(to: url)
    }
    return try self.request(texts.map(\.key), parameter, below: folder, protoc)
  }

  private static func request(
    _ files: [String],
    _ parameter: String,
    below folder: URL,
    _ protoc: String = "protoc"
  ) throws -> GeneratorRequest {
    let output = FileManager.default.temporaryDirectory.appending(path: "\(UUID().uuidString).pb")
    defer { try? FileManager.default.removeItem(at: output) }
    let problems = try run(
      protoc,
      [
        "-I", folder.path, "--include_imports", "--include_source_info",
        "--descriptor_set_out=\(output.path)",
      ] + files
    )
    guard FileManager.default.fileExists(atPath: output.path) else { throw ProtocFailure(problems) }
    let set = try Google_Protobuf_FileDescriptorSet(serializedBytes: Data(contentsOf: output))
    return GeneratorRequest.with {
      $0.protoFile = set.file
      $0.fileToGenerate = files
      $0.parameter = parameter
    }
  }
}

struct ProtocFailure: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }
}

/// Runs a program and returns its output.
func run(_ program: String, _ arguments: [String]) throws -> String {
  let (process, pipe) = try Process.start { process in
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = [program] + arguments
    let pipe = Pipe()
    process.standardOutput = pipe
    process.standardError = pipe
    return pipe
  }
  let output = try pipe.fileHandleForReading.readToEnd() ?? Data()
  process.waitUntilExit()
  return String(decoding: output, as: UTF8.self)
}

/// The one file that `request` generates.
func generate(_ request: GeneratorRequest, _ generator: some CodeGenerator) throws -> String {
  let response = Plugin.respond(to: request, generator)
  guard response.error.isEmpty else { throw ProtocFailure(response.error) }
  XCTAssertEqual(response.file.count, 1)
  return try XCTUnwrap(response.file.first).content
}
