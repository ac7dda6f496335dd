internal import Connect
internal import NIOCore
internal import ProtobufCStubs
internal import SwiftProtobuf
import XCTest

@testable import ConnectProtobufC

/// Descriptor sets that would take minutes if the time grew with the square of their size.
final class LargeSetTests: XCTestCase {
  private typealias Message = Google_Protobuf_DescriptorProto
  private typealias Field = Google_Protobuf_FieldDescriptorProto

  private static let size = 20_000
  private static let chainLength = 40_000

  private func pool(_ messages: [Message], package: String = "a") throws -> DescriptorPool {
    let set = Google_Protobuf_FileDescriptorSet.with {
      $0.file = [
        .with {
          $0.name = "a.proto"
          $0.package = package
          $0.syntax = "proto2"
          $0.messageType = messages
        }
      ]
    }
    return try DescriptorPool(serializedFileDescriptorSet: set.buffer)
  }

  private func field(_ number: Int, _ type: Field.TypeEnum, _ typeName: String = "") -> Field {
    .with {
      $0.name = "f\(number)"
      $0.number = Int32(number)
      $0.type = type
      $0.label = .optional
      $0.typeName = typeName
    }
  }

  /// Messages of which each but the first has the one before it.
  private func chain(_ first: Message) -> [Message] {
    var first = first
    first.name = "M0"
    return [first]
      + (1..<Self.chainLength).map { index in
        .with {
          $0.name = "M\(index)"
          $0.field = [self.field(1, .message, ".a.M\(index - 1)")]
        }
      }
  }

  func testManyOneofs() throws {
    let message = Message.with {
      $0.name = "M"
      $0.oneofDecl = (0..<Self.size).map { index in .with { $0.name = "o\(index)" } }
      $0.field = (1...Self.size).map { number in
        var field = self.field(number, .bool)
        field.oneofIndex = Int32(Self.size - number)
        return field
      }
    }
    let descriptor = try self.pool([message]).message("a.M")
    XCTAssertEqual(descriptor.oneofNames.count, Self.size)
    var made = DynamicMessage(descriptor)
    try made.set(Self.size, to: true)
    XCTAssertEqual(try made.member(ofOneof: "o0"), "f\(Self.size)")
    XCTAssertNil(try made.member(ofOneof: "o1"))
  }

  func testManyMembersOfOneOneof() throws {
    let message = Message.with {
      $0.name = "M"
      $0.oneofDecl = [.with { $0.name = "o" }]
      $0.field = (1...Self.size).map { number in
        var field = self.field(number, .int32)
        field.oneofIndex = 0
        return field
      }
    }
    var made = DynamicMessage(try self.pool([message]).message("a.M"))
    try made.set(Self.size / 2, to: 1)
    XCTAssertEqual(try made.member(ofOneof: "o"), "f\(Self.size / 2)")
  }

  func testLongChainThatIsUnusable() throws {
    let pool = try self.pool(self.chain(.with { $0.field = [self.field(1, .group)] }))
    XCTAssertEqual(pool.messageNames, [])
    expectError(.invalidArgument, "a.M0.f1: libprotobuf-c has no groups") {
      try pool.message("a.M\(Self.chainLength - 1)")
    }
  }

  func testLongChainWithAMapAtItsEnd() throws {
    let first = Message.with {
      var field = self.field(1, .message, ".a.M0.Entry")
      field.label = .repeated
      $0.field = [field]
      $0.nestedType = [
        .with {
          $0.name = "Entry"
          $0.options.mapEntry = true
          $0.field = [self.field(1, .int32), self.field(2, .int32)]
          $0.field[0].name = "key"
          $0.field[1].name = "value"
        }
      ]
    }
    let pool = try self.pool(self.chain(first) + [.with { $0.name = "N" }])
    XCTAssertTrue(try pool.message("a.M\(Self.chainLength - 1)").schema.containsMaps)
    XCTAssertFalse(try pool.message("a.N").schema.containsMaps)
  }

  func testLongChainWithARequiredFieldAtItsEnd() throws {
    let first = Message.with {
      $0.field = [self.field(1, .int32)]
      $0.field[0].label = .required
    }
    let pool = try self.pool(self.chain(first) + [.with { $0.name = "N" }])
    XCTAssertTrue(try pool.message("a.M\(Self.chainLength - 1)").schema.table.containsRequired)
    XCTAssertFalse(try pool.message("a.N").schema.table.containsRequired)
  }

  /// A name that is written once is part of the full names of many.
  func testLongNamesOfMuch() throws {
    let long = String(repeating: "x", count: 4000)
    let messages = (0..<5000).map { index in Message.with { $0.name = "M\(index)" } }
    let problem = "the descriptor set's names take more than 16777216 bytes"
    expectError(.invalidArgument, problem) { try self.pool(messages, package: long) }
    expectError(.invalidArgument, problem) {
      try self.pool([
        .with {
          $0.name = long
          $0.nestedType = messages
        }
      ])
    }
    expectError(.invalidArgument, problem) {
      try DescriptorPool(
        .with {
          $0.file = [
            .with {
              $0.service = [
                .with { service in
                  service.name = long
                  service.method = (0..<5000).map { index in .with { $0.name = "m\(index)" } }
                }
              ]
            }
          ]
        }
      )
    }
    XCTAssertEqual(try self.pool(messages, package: "x").messageNames.count, 5000)
  }

  /// What is done for each field would take time for the name of its message.
  func testLongName() throws {
    let problem = "a full name in the descriptor set takes more than 4096 bytes"
    let longest = Message.with { $0.name = String(repeating: "x", count: 4095) }
    XCTAssertEqual(try self.pool([longest]).messageNames.count, 1)
    let longer = Message.with { $0.name = String(repeating: "x", count: 4096) }
    expectError(.invalidArgument, problem) { try self.pool([longer]) }
  }

  func testManyFieldsOfTypesThatCannotBeUsed() throws {
    let many = Message.with {
      $0.name = String(repeating: "m", count: 4000)
      $0.field = (1...100_000).map { self.field($0, $0 % 2 == 0 ? .group : .message, ".a.G") }
    }
    let group = Message.with {
      $0.name = "G"
      $0.field = [self.field(1, .group)]
    }
    XCTAssertEqual(try self.pool([group, many]).messageNames, [])
  }
}
