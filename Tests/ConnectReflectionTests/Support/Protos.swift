internal import Connect
internal import Foundation
internal import LoopbackServer
internal import NIOCore
internal import SwiftProtobuf
import XCTest

@testable import ConnectReflection

typealias File = Google_Protobuf_FileDescriptorProto

enum Folders {
  static let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../..")
    .standardized
  /// The folder of the repository's proto files.
  static let protos = root.appending(path: "Protos").path()
  /// The folder of these tests' proto files.
  static let own = root.appending(path: "Tests/ConnectReflectionTests/Protos").path()

  /// The paths of all proto files below a folder, without the folder.
  static func protoFiles(in folder: String) throws -> [String] {
    try FileManager.default.subpathsOfDirectory(atPath: folder).filter { $0.hasSuffix(".proto") }.sorted()
  }

  /// Calls `body` with a temporary folder, and removes the folder afterwards.
  static func withTemporary<Result>(_ body: (URL) async throws -> Result) async throws -> Result {
    let folder = FileManager.default.temporaryDirectory.appending(path: "reflection-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    return try await body(folder)
  }
}

extension ProtoFileSet {
  /// Files of the repository's tests.
  static func test(_ names: [String] = ["connect/test/v1/test.proto"]) async throws -> ProtoFileSet {
    try await .compile(names, importPaths: [Folders.protos])
  }
}

extension ProtoCompiler {
  /// A newer protoc, which supports editions, from the tests' Python packages.
  static var newer: ProtoCompiler? {
    let path = Folders.root.appending(path: ".venv/bin/python-grpc-tools-protoc").path()
    return FileManager.default.isExecutableFile(atPath: path) ? ProtoCompiler(kind: .protoc, path: path) : nil
  }

  func fileSet(_ files: [String], in folders: [String]) async throws -> ProtoFileSet {
    try ProtoFileSet(
      serializedFileDescriptorSet: try await self.compile(files, importPaths: folders)
    )
  }
}

/// Expects `body` to throw a ``ConnectError`` of this code, whose message contains the texts.
func expectError<Result>(
  _ code: Code,
  _ texts: String...,
  file: StaticString = #filePath,
  line: UInt = #line,
  _ body: () async throws -> Result
) async {
  do {
    _ = try await body()
    XCTFail("no error", file: file, line: line)
  } catch {
    guard let error = error as? ConnectError else { return XCTFail("\(error)", file: file, line: line) }
    XCTAssertEqual(error.code, code, "\(error)", file: file, line: line)
    for text in texts {
      XCTAssertTrue(error.message?.contains(text) ?? false, "\(error)", file: file, line: line)
    }
  }
}
