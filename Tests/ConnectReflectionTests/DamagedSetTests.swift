internal import Connect
internal import Foundation
internal import NIOCore
internal import SwiftProtobuf
internal import TestSupport
import XCTest

@testable import ConnectReflection

/// Descriptor sets with bytes that are wrong are refused, or printed as they are.
final class DamagedSetTests: XCTestCase {
  func testDamagedSets() async throws {
    let rounds = ProcessInfo.processInfo.environment["CONNECT_FUZZ_ROUNDS"].flatMap { Int($0) } ?? 500
    var random = SeededGenerator()
    for name in ["canonical.proto", "legacy.proto"] {
      let set = try await ProtoFileSet.compile([name], importPaths: [Folders.own])
      // Small, so that most of the bytes that are changed say something.
      let file = set.files.filter { $0.name == name }.map { file in
        var file = file
        file.sourceCodeInfo.location = file.sourceCodeInfo.location.filter { $0.hasLeadingComments }
        return file
      }
      let bytes: [UInt8] = try Google_Protobuf_FileDescriptorSet.with { $0.file = file }
        .serializedBytes(partial: true)
      var count = 0
      for _ in 0..<rounds {
        var damaged = bytes
        for _ in 0..<Int.random(in: 1...4, using: &random) {
          let place = Int.random(in: damaged.indices, using: &random)
          damaged[place] = UInt8.random(in: 0...255, using: &random)
        }
        do {
          let set = try ProtoFileSet(serializedFileDescriptorSet: ByteBuffer(bytes: damaged))
          for name in set.fileNames {
            _ = try set.source(ofFile: name)
            _ = try? set.json(of: name)
          }
          _ = try? set.descriptorPool()
          count += 1
        } catch {
          XCTAssertTrue(error is ConnectError, "\(error)")
        }
      }
      XCTAssertGreaterThan(count, 0)
    }
  }
}
