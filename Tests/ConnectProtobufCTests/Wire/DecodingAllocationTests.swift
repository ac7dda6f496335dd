internal import CAllocations
internal import ConnectProtobufC
internal import Foundation
internal import LoopbackServer
internal import NIOCore
internal import ProtobufCExamples
internal import ProtobufCStubs
internal import SwiftProtobuf
import XCTest

/// What a decode allocates: the arena, which takes all of the message, and the object that gives it back. Debug builds
/// allocate as much for it as release builds.
final class DecodingAllocationTests: XCTestCase {
  private static let limit = 3.0

  /// About 1 kB, with 15 fields of all kinds.
  private let medium = Kinds.with {
    $0.aDouble = 1.5
    $0.anInt32 = 7
    $0.anInt64 = 1 << 40
    $0.aUint64 = .max
    $0.aBool = true
    $0.aString = String(repeating: "text ", count: 60)
    $0.someBytes = Data(repeating: 7, count: 200)
    $0.aShade = .dark
    $0.oneString = "chosen"
    $0.odd_Name3 = "odd"
    $0.nested.aString = "inner"
    $0.repeated.strings = (0..<10).map { "word \($0)" }
    $0.repeated.int32S = (0..<20).map { 1000 * $0 }
    $0.maps.strings = ["one": "1", "two": "2"]
    $0.optionals.aString = "there"
  }

  private func allocations(_ body: () throws -> Void) throws -> Double {
    try XCTSkipIf(allocations_count() == 0, "allocations are not counted in this build")
    let count = 200
    // What is made at first use.
    for _ in 0..<10 { try body() }
    let before = allocations_count_of_thread()
    for _ in 0..<count { try body() }
    return Double(allocations_count_of_thread() - before) / Double(count)
  }

  func testMediumMessage() throws {
    let bytes = try self.medium.buffer
    XCTAssertGreaterThan(bytes.readableBytes, 700)
    var total = 0
    let ofStruct = try self.allocations {
      let message = try CKinds(serializedBytes: bytes)
      total += Int(message.an_int32) + Int(message.pointee.a_bool)
    }
    XCTAssertLessThanOrEqual(ofStruct, Self.limit)
    let descriptor = try kindsDescriptor()
    let ofDynamic = try self.allocations {
      total += try DynamicMessage(descriptor, serializedBytes: bytes).has("an_int32") ? 1 : 0
    }
    XCTAssertLessThanOrEqual(ofDynamic, Self.limit)
    XCTAssertGreaterThan(total, 0)
    // The counter sees what others allocate.
    XCTAssertGreaterThan(try self.allocations { _ = try Kinds(bytes) }, 2 * Self.limit)
  }
}
