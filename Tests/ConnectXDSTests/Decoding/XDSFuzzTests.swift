internal import Foundation
internal import SwiftProtobuf
internal import TestSupport
internal import XCTest

@testable internal import ConnectXDS

/// Valid resources, cut, spliced and damaged at random: nothing traps, and what is refused has a reason. The seed is printed,
/// so that a failure can be repeated.
final class XDSFuzzTests: XCTestCase {
  /// How many damaged inputs to try; `make fuzz` sets many more than the default.
  private static let rounds =
    ProcessInfo.processInfo.environment["CONNECT_FUZZ_ROUNDS"].flatMap(Int.init) ?? 4000

  private func damage(_ bytes: inout [UInt8], _ other: [UInt8], _ random: inout SeededGenerator) {
    guard let index = bytes.indices.randomElement(using: &random) else { return }
    // Most keep the lengths of messages right: others seldom get beyond the parser.
    switch Int.random(in: -8..<8, using: &random) {
    case ..<0: bytes[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
    case 0...2: bytes[index] = UInt8.random(in: 0...255, using: &random)
    case 3: bytes.removeSubrange(index...)
    case 4: bytes.remove(at: index)
    case 5: bytes.insert([0, 1, 0x7f, 0x80, 0xff, 0x0a, 0x12].randomElement(using: &random) ?? 0, at: index)
    case 6: bytes.insert(contentsOf: bytes[index...].prefix(50), at: index)
    default:
      guard let start = other.indices.randomElement(using: &random) else { return }
      bytes.insert(contentsOf: other[start...].prefix(80), at: index)
    }
  }

  func testDamagedResources() throws {
    var random = SeededGenerator()
    let resources = try ResourceExamples.all.map { type, text in
      let message = try ResourceText.message(text, as: type)
      XCTAssertEqual(try ResourceText.problems(text, as: type), [])
      return (type: type, bytes: Array(message.value))
    }
    var acceptedCount = 0
    var refusedCount = 0
    for _ in 0..<Self.rounds {
      guard let resource = resources.randomElement(using: &random),
        let other = resources.randomElement(using: &random)
      else { return }
      var bytes = resource.bytes
      for _ in 0..<Int.random(in: 1...3, using: &random) { self.damage(&bytes, other.bytes, &random) }
      let message = Google_Protobuf_Any.with {
        $0.typeURL = resource.type.url
        $0.value.append(contentsOf: bytes)
      }
      switch ResourceText.decoder.decode(message, as: resource.type).resource {
      case .success: acceptedCount += 1
      case .failure(let problem):
        refusedCount += 1
        XCTAssertFalse(problem.problems.isEmpty)
      }
    }
    XCTAssertGreaterThan(acceptedCount, Self.rounds / 50)
    XCTAssertGreaterThan(refusedCount, Self.rounds / 20)
  }

  func testDamagedWrappers() throws {
    var random = SeededGenerator()
    let wrappers = try ResourceExamples.all.map { type, text in
      let wrapper = try Envoy_Service_Discovery_V3_Resource.with {
        $0.name = "a"
        $0.resource = try ResourceText.message(text, as: type)
      }
      return (type: type, packed: try ResourceText.onWire(Google_Protobuf_Any(message: wrapper)))
    }
    for _ in 0..<Self.rounds / 4 {
      guard let (type, packed) = wrappers.randomElement(using: &random) else { return }
      var bytes = Array(packed.value)
      self.damage(&bytes, bytes, &random)
      let message = Google_Protobuf_Any.with {
        $0.typeURL = packed.typeURL
        $0.value.append(contentsOf: bytes)
      }
      if case .failure(let problem) = ResourceText.decoder.decode(message, as: type).resource {
        XCTAssertFalse(problem.problems.isEmpty)
      }
    }
  }

  /// Patterns come from servers as well.
  func testRandomPatterns() {
    var random = SeededGenerator()
    let pieces = [
      "(", ")", "[", "]", "{", "}", "*", "+", "?", "|", "\\", ".", "^", "$", "a", "é", "-", ":", "<", ">",
      "=",
      "!", "P", "x", "u", "1", "999999999999", ",", "\\d", "\\b", "(?i)", "(?:", "[^", "[:alpha:]", "\\p{L}",
      "\\Q",
    ]
    var validCount = 0
    for _ in 0..<Self.rounds {
      let count = Int.random(in: 0..<12, using: &random)
      let pattern = (0..<count).map { _ in pieces.randomElement(using: &random) ?? "" }.joined()
      if RegexSyntax.problem(of: pattern) == nil { validCount += 1 }
    }
    XCTAssertGreaterThan(validCount, 0)
    let deep = String(repeating: "(", count: 100_000)
    XCTAssertNotNil(RegexSyntax.problem(of: deep))
  }
}
