internal import Connect
internal import Foundation
internal import SwiftProtobuf
internal import TestSupport
import XCTest

@testable import ConnectReflection

/// What the printer writes compiles to the descriptors that it was written from.
final class RoundTripTests: XCTestCase {
  /// - Parameter keepsSourceInfo: Whether the printer knows the order and the comments.
  private func expectRoundTrip(
    of set: ProtoFileSet,
    _ compiler: ProtoCompiler,
    keepsSourceInfo: Bool,
    _ what: String
  ) async throws {
    let files = set.files.map { file in
      var file = file
      if !keepsSourceInfo { file.clearSourceCodeInfo() }
      return file
    }
    let printed = try ProtoFileSet(files)
    try await Folders.withTemporary { folder in
      for name in printed.fileNames {
        let path = folder.appending(path: name)
        try FileManager.default.createDirectory(
          at: path.deletingLastPathComponent(),
          withIntermediateDirectories: true
        )
        try Data(try printed.source(ofFile: name).utf8).write(to: path)
      }
      let again: ProtoFileSet
      do {
        again = try await compiler.fileSet(
          printed.fileNames.map { "\(folder.path())/\($0)" },
          in: [folder.path()]
        )
      } catch {
        return XCTFail("\(what): \(error)")
      }
      for file in printed.files {
        guard let other = again.files.first(where: { $0.name == file.name }) else {
          XCTFail("\(what): \(file.name) is missing")
          continue
        }
        self.expectEqual(file, other, comments: keepsSourceInfo, "\(what): \(file.name)")
      }
    }
  }

  private func expectEqual(_ file: File, _ other: File, comments: Bool, _ what: String) {
    var (left, right) = (file, other)
    left.clearSourceCodeInfo()
    right.clearSourceCodeInfo()
    if left != right {
      let (leftText, rightText) = (left.textFormatString(), right.textFormatString())
      let (leftLines, rightLines) = (leftText.split(separator: "\n"), rightText.split(separator: "\n"))
      let first = zip(leftLines, rightLines).enumerated().first { $1.0 != $1.1 }?.offset ?? 0
      XCTFail(
        "\(what) differs:\n\(leftLines.dropFirst(max(0, first - 8)).prefix(12).joined(separator: "\n"))\n---\n"
          + rightLines.dropFirst(max(0, first - 8)).prefix(12).joined(separator: "\n")
      )
    }
    guard comments else { return }
    let (leftComments, rightComments) = (self.comments(of: file), self.comments(of: other))
    for (path, text) in leftComments where rightComments[path] != text {
      XCTFail("\(what): the comments at \(path) were \(text), and are \(rightComments[path] ?? [])")
    }
  }

  private func comments(of file: File) -> [[Int32]: [String]] {
    var comments: [[Int32]: [String]] = [:]
    for location in file.sourceCodeInfo.location {
      let texts =
        location.leadingDetachedComments + [location.leadingComments, location.trailingComments]
      comments[location.path, default: []] += texts.filter { !$0.isEmpty }.map(self.plain)
    }
    return comments.filter { !$0.value.isEmpty }
  }

  /// Lines that end as Unix has it, without control characters.
  private func plain(_ comment: String) -> String {
    let lines = comment.utf8.split(separator: UInt8(ascii: "\n")).map {
      ProtoText.comment(Substring($0.last == UInt8(ascii: "\r") ? $0.dropLast() : $0))
    }
    return lines.joined(separator: "\n")
  }

  private func expectRoundTrips(_ set: ProtoFileSet, _ compiler: ProtoCompiler, _ what: String) async throws {
    try await self.expectRoundTrip(of: set, compiler, keepsSourceInfo: true, what)
    try await self.expectRoundTrip(of: set, compiler, keepsSourceInfo: false, "\(what), without source info")
  }

  func testProtosOfTheRepository() async throws {
    let compiler = try ProtoCompiler.find()
    let names = try Folders.protoFiles(in: Folders.protos)
    XCTAssertGreaterThan(names.count, 15)
    for name in names {
      let set = try await compiler.fileSet([name], in: [Folders.protos])
      try await self.expectRoundTrips(set, compiler, name)
    }
  }

  func testCanonicalProto() async throws {
    let path = "\(Folders.own)/canonical.proto"
    let set = try await ProtoFileSet.compile([path], importPaths: [Folders.own])
    let text = try String(contentsOfFile: path, encoding: .utf8)
    let printed = try set.source(ofFile: "canonical.proto")
    let (lines, printedLines) = (
      text.split(separator: "\n", omittingEmptySubsequences: false),
      printed.split(separator: "\n", omittingEmptySubsequences: false)
    )
    for (number, (line, printed)) in zip(lines, printedLines).enumerated() where line != printed {
      return XCTFail(
        "line \(number + 1) was '\(line)', and is '\(printed)' in\n\(printedLines.joined(separator: "\n"))"
      )
    }
    XCTAssertEqual(lines.count, printedLines.count)
    try await self.expectRoundTrips(set, try .find(), "canonical")
  }

  func testLegacyProto() async throws {
    let compiler = try ProtoCompiler.find()
    try await self.expectRoundTrips(
      try await compiler.fileSet(["legacy.proto"], in: [Folders.own]),
      compiler,
      "legacy"
    )
  }

  func testEditions() async throws {
    guard let compiler = ProtoCompiler.newer else { throw XCTSkip("run `make venv`") }
    let set = try await compiler.fileSet(["editions/editions.proto"], in: [Folders.own])
    try await self.expectRoundTrips(set, compiler, "editions")
  }

  func testWellKnownTypes() async throws {
    let compiler = try ProtoCompiler.find()
    let names = [
      "any", "api", "descriptor", "duration", "empty", "field_mask", "source_context", "struct", "timestamp",
      "type", "wrappers",
    ].map { "google/protobuf/\($0).proto" }
    try await Folders.withTemporary { folder in
      let path = folder.appending(path: "all.proto")
      let text = "syntax = \"proto3\";\n" + names.map { "import \"\($0)\";\n" }.joined()
      try Data(text.utf8).write(to: path)
      let set = try await compiler.fileSet([path.path()], in: [folder.path()])
      XCTAssertEqual(set.fileNames.count, names.count + 1)
      try await self.expectRoundTrips(set, compiler, "well-known types")
    }
  }

  func testRandomFiles() async throws {
    let compiler = try ProtoCompiler.find()
    for seed in 0..<10 {
      for isProto3 in [false, true] {
        var random = RandomFile(SeededGenerator(quietly: UInt64(seed)), isProto3: isProto3)
        let set = try ProtoFileSet([random.make()])
        try await self.expectRoundTrip(of: set, compiler, keepsSourceInfo: false, "seed \(seed)")
      }
    }
  }

  /// Where the package manager keeps the sources of SwiftProtobuf.
  func testProtosOfSwiftProtobuf() async throws {
    let checkout = Folders.root.appending(path: ".build/checkouts/swift-protobuf").path()
    guard let compiler = ProtoCompiler.newer, FileManager.default.fileExists(atPath: checkout) else {
      throw XCTSkip("no checkout of swift-protobuf, or no newer protoc")
    }
    let folders = [
      "\(checkout)/Protos/Tests/SwiftProtobufTests", "\(checkout)/Protos/Sources/SwiftProtobuf",
      "\(checkout)/Sources/protobuf/protobuf/src",
    ]
    // All of them take a minute.
    let takesAll = ProcessInfo.processInfo.environment["CONNECT_PROPERTY_ROUNDS"] != nil
    let some = [
      "unittest.", "unittest_custom", "unittest_proto3.", "unittest_features", "unittest_retention",
    ]
    var count = 0
    for folder in folders where FileManager.default.fileExists(atPath: folder) {
      for name in try Folders.protoFiles(in: folder) {
        guard takesAll || some.contains(where: { name.contains("/\($0)") }) else { continue }
        // Some need flags of protoc, or folders of others. An unstable edition is not to be relied on.
        guard let set = try? await compiler.fileSet([name], in: [folder]),
          !set.files.contains(where: { $0.edition == .unstable })
        else { continue }
        count += 1
        try await self.expectRoundTrips(set, compiler, name)
      }
    }
    XCTAssertGreaterThan(count, takesAll ? 100 : 3)
  }
}
