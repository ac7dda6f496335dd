internal import Connect
internal import Foundation
internal import NIOCore
internal import ProtobufCExamples
internal import ProtobufCStubs
internal import SwiftProtobuf
internal import TestSupport
import XCTest

@testable import ConnectProtobufC

/// Valid messages, cut and damaged at random: no crash, and what is accepted is what SwiftProtobuf reads. The seed is
/// printed, so that a failure can be repeated.
final class ProtobufCFuzzTests: XCTestCase {
  /// How many damaged inputs to try; `make fuzz` sets many more than the default.
  private static let rounds =
    ProcessInfo.processInfo.environment["CONNECT_FUZZ_ROUNDS"].flatMap(Int.init) ?? 4000
  /// A new random message is taken after so many damaged copies of one.
  private static let copies = 20

  private func damage(_ bytes: inout [UInt8], _ random: inout SeededGenerator, symbols: [UInt8]) {
    guard !bytes.isEmpty else { return }
    let index = Int.random(in: 0..<bytes.count, using: &random)
    switch Int.random(in: 0..<7, using: &random) {
    case 0: bytes[index] = UInt8.random(in: 0...255, using: &random)
    case 1: bytes[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
    case 2: bytes.removeSubrange(index...)
    case 3: bytes.remove(at: index)
    case 4: bytes.insert(symbols.randomElement(using: &random) ?? 0, at: index)
    case 5: bytes[index] = symbols.randomElement(using: &random) ?? 0
    default: bytes.insert(contentsOf: bytes[index...].prefix(50), at: index)
    }
  }

  /// A message as a text, in which NaN is equal to itself, without the fields that are zero: libprotobuf-c leaves out -0.0
  /// where a field has no presence, or where it is the value of a map or of a wrapper.
  private func comparable(_ message: Kinds) -> String {
    message.textFormatString().split(separator: "\n")
      .filter { !$0.hasSuffix(": 0.0") && !$0.hasSuffix(": -0.0") }
      .joined(separator: "\n")
  }

  /// Each piece of a message has an allocation of its own, so that an address sanitizer sees a step out of it.
  func testDamagedBytes() throws {
    var random = RandomKinds(random: SeededGenerator())
    let tables = [Connect__Kinds__V1__Kinds.messageType.table, try kindsDescriptor().schema.table]
    let graph = try kindsDescriptor().graph
    let limits = DecodingLimits(maximumMemory: 4 * 1024 * 1024)
    let symbols: [UInt8] = [0, 1, 0x7f, 0x80, 0xff, 0x0a, 0x12, 0x72, 0x8a, 0x92]
    var original: [UInt8] = []
    var acceptedCount = 0
    for round in 0..<Self.rounds {
      if round % Self.copies == 0 { original = Array(try random.kinds().buffer.readableBytesView) }
      var bytes = original
      for _ in 0..<Int.random(in: 1...3, using: &random.random) {
        self.damage(&bytes, &random.random, symbols: symbols)
      }
      for table in tables {
        let decoded = bytes.withUnsafeBytes {
          try? BinaryCoding.decode($0, of: table, graph: graph, limits: limits, isolatesPieces: true)
        }
        guard let decoded else { continue }
        acceptedCount += 1
        let encoded = try BinaryCoding.encode(decoded, of: table)
        XCTAssertNoThrow(
          try StructCheck(maximumDepth: 100).check(decoded.message, of: table),
          "round \(round): \(bytes)"
        )
        let theirs = try? Kinds(serializedBytes: bytes)
        XCTAssertNotNil(theirs, "round \(round): SwiftProtobuf refuses \(bytes)")
        XCTAssertEqual(
          self.comparable(try Kinds(encoded)),
          theirs.map(self.comparable),
          "round \(round): \(bytes)"
        )
      }
      if (self.testRun?.totalFailureCount ?? 0) > 0 { return }
    }
    XCTAssertGreaterThan(acceptedCount, Self.rounds / 10)
  }

  func testDamagedJSON() throws {
    var random = RandomKinds(random: SeededGenerator())
    let descriptor = try kindsDescriptor()
    let limits = DecodingLimits(maximumMemory: 4 * 1024 * 1024)
    let symbols = Array(#"{}[]",:0\eE-+.tfn"#.utf8)
    var original: [UInt8] = []
    var acceptedCount = 0
    for round in 0..<Self.rounds {
      if round % Self.copies == 0 { original = Array(try random.kinds().jsonUTF8Data()) }
      var bytes = original
      for _ in 0..<Int.random(in: 1...3, using: &random.random) {
        self.damage(&bytes, &random.random, symbols: symbols)
      }
      let buffer = ByteBuffer(bytes: bytes)
      let structure = try? CKinds(jsonBytes: buffer, limits: limits)
      let dynamic = try? DynamicMessage(descriptor, jsonBytes: buffer, limits: limits)
      guard let dynamic else {
        XCTAssertNil(structure, "round \(round): \(buffer.text)")
        continue
      }
      acceptedCount += 1
      let encoded = try dynamic.serializedBytes(deterministic: true)
      // A C string cannot hold all that a dynamic message can.
      if let structure { XCTAssertEqual(try structure.serializedBytes(deterministic: true), encoded) }
      _ = try Kinds(encoded)
      if (self.testRun?.totalFailureCount ?? 0) > 0 { return }
    }
    XCTAssertGreaterThan(acceptedCount, Self.rounds / 100)
  }

  func testDamagedDescriptorSets() throws {
    var random = SeededGenerator()
    let pool = try connectTestV1TestDescriptors.pool()
    XCTAssertFalse(pool.messageNames.isEmpty)
    let file = Google_Protobuf_FileDescriptorProto.with {
      $0.name = "a.proto"
      $0.package = "a"
      $0.syntax = "proto2"
      $0.messageType = [
        .with { message in
          message.name = "M"
          message.oneofDecl = [.with { $0.name = "o" }]
          message.field = (1...18).filter { $0 != 10 }.map { number in
            .with {
              $0.name = "f\(number)"
              $0.number = Int32(number)
              $0.type = .init(rawValue: number) ?? .bool
              $0.label = .init(rawValue: number % 3 + 1) ?? .optional
              if number == 11 || number == 14 { $0.typeName = number == 11 ? ".a.M" : ".a.E" }
              if number == 5 || number == 17 {
                $0.oneofIndex = 0
                $0.label = .optional
              }
              if $0.type == .string || $0.type == .bytes { $0.defaultValue = #"a\001"# }
            }
          }
        }
      ]
      $0.enumType = [
        .with {
          $0.name = "E"
          $0.value = [.with { $0.name = "E_A" }]
        }
      ]
    }
    let original =
      try Google_Protobuf_FileDescriptorSet.with { $0.file = [file] }.serializedBytes() as [UInt8]
    var acceptedCount = 0
    for _ in 0..<(Self.rounds / 10) {
      var bytes = original
      for _ in 0..<Int.random(in: 0...2, using: &random) {
        self.damage(&bytes, &random, symbols: [0, 1, 0x80])
      }
      guard let pool = try? DescriptorPool(serializedFileDescriptorSet: ByteBuffer(bytes: bytes)) else {
        continue
      }
      acceptedCount += 1
      for name in pool.messageNames {
        let message = DynamicMessage(try pool.message(name))
        for field in message.descriptor.fieldNames { _ = try message.value(of: field) }
        let schema = message.descriptor.schema
        XCTAssertNoThrow(try BinaryCoding.encode(message.handle, of: schema.table, isPartial: true))
        _ = try? message.serializedBytes(deterministic: true)
        for _ in 0..<5 {
          let input = (0..<20).map { _ in UInt8.random(in: 0...127, using: &random) }
          _ = try? DynamicMessage(message.descriptor, serializedBytes: ByteBuffer(bytes: input))
        }
      }
    }
    XCTAssertGreaterThan(acceptedCount, 0)
  }
}
