internal import Connect
internal import ConnectProtobufC
internal import Foundation
internal import NIOCore
internal import ProtobufCExamples
internal import ProtobufCStubs
internal import SwiftProtobuf
import XCTest

typealias CKinds = CMessage<Connect__Kinds__V1__Kinds>

extension ByteBuffer {
  var data: Data { Data(self.readableBytesView) }

  var text: String { String(buffer: self) }
}

extension SwiftProtobuf.Message {
  /// The message from libprotobuf-c's bytes.
  init(_ bytes: ByteBuffer) throws {
    try self.init(serializedBytes: Array(bytes.readableBytesView))
  }

  var buffer: ByteBuffer {
    get throws { ByteBuffer(bytes: try self.serializedBytes() as [UInt8]) }
  }

  var jsonBuffer: ByteBuffer {
    get throws { ByteBuffer(string: try self.jsonString()) }
  }
}

/// The dynamic descriptor of the test's messages.
func kindsDescriptor(_ name: String = "Kinds") throws -> MessageDescriptor {
  try connectKindsV1KindsDescriptors.pool().message("connect.kinds.v1.\(name)")
}

/// Expects `body` to throw a ``ConnectError`` of this code, whose message contains `text`.
func expectError<T>(
  _ code: Code,
  _ text: String,
  file: StaticString = #filePath,
  line: UInt = #line,
  _ body: () throws -> T
) {
  XCTAssertThrowsError(try body(), file: file, line: line) { error in
    let error = error as? ConnectError
    XCTAssertEqual(error?.code, code, String(describing: error), file: file, line: line)
    let message = error?.message ?? ""
    XCTAssertTrue(text.isEmpty || message.contains(text), message, file: file, line: line)
  }
}

/// Protobuf's binary encoding, piece by piece.
struct WireWriter {
  var bytes: [UInt8] = []

  mutating func varint(_ value: UInt64) {
    var rest = value
    while rest >= 0x80 {
      self.bytes.append(UInt8(rest & 0x7f) | 0x80)
      rest >>= 7
    }
    self.bytes.append(UInt8(rest))
  }

  mutating func tag(_ number: UInt64, _ wireType: UInt64) {
    self.varint(number << 3 | wireType)
  }

  mutating func field(_ number: UInt64, _ content: some Collection<UInt8>) {
    self.tag(number, 2)
    self.varint(UInt64(content.count))
    self.bytes += content
  }

  var buffer: ByteBuffer { ByteBuffer(bytes: self.bytes) }

  static func build(_ body: (inout WireWriter) -> Void) -> WireWriter {
    var writer = WireWriter()
    body(&writer)
    return writer
  }
}
