import Connect
import Foundation
import NIOCore
import SwiftProtobuf
import XCTest

/// Codecs as users write them, with nothing but the public API.
final class UserCodecTests: XCTestCase {
  /// Wraps another codec.
  private struct MaskingCodec: Codec {
    let name = "masked"
    private let inner = ProtoCodec()

    func encode<Message: Sendable>(
      _ message: Message,
      as coding: MessageCoding<Message>,
      deterministic: Bool
    ) throws -> ByteBuffer {
      self.mask(try self.inner.encode(message, as: coding, deterministic: deterministic))
    }

    func decode<Message: Sendable>(
      _ bytes: ByteBuffer,
      as coding: MessageCoding<Message>
    ) throws -> Message {
      try self.inner.decode(self.mask(bytes), as: coding)
    }

    private func mask(_ bytes: ByteBuffer) -> ByteBuffer {
      ByteBuffer(bytes: bytes.readableBytesView.map { $0 ^ 0x5a })
    }
  }

  /// Encodes on its own, whatever is `Codable`.
  private struct PropertyListCodec: Codec {
    struct NotCodable: Error {}
    let name = "plist"

    func encode<Message: Sendable>(
      _ message: Message,
      as coding: MessageCoding<Message>,
      deterministic: Bool
    ) throws -> ByteBuffer {
      guard let message = message as? any Encodable else { throw NotCodable() }
      return ByteBuffer(bytes: try PropertyListEncoder().encode(message))
    }

    func decode<Message: Sendable>(
      _ bytes: ByteBuffer,
      as coding: MessageCoding<Message>
    ) throws -> Message {
      guard let type = Message.self as? any Decodable.Type,
        let message = try PropertyListDecoder().decode(type, from: Data(bytes.readableBytesView)) as? Message
      else { throw NotCodable() }
      return message
    }
  }

  private struct Point: Codable, Hashable {
    var x: Int
    var y: Int
  }

  func testACodecThatWrapsAnother() throws {
    let codec: any Codec = MaskingCodec()
    let coding = MessageCoding<Google_Protobuf_Duration>.protobuf
    let message = Google_Protobuf_Duration(seconds: 3, nanos: 4)
    let bytes = try codec.encode(message, as: coding, deterministic: false)
    let plain: [UInt8] = try message.serializedBytes()
    XCTAssertEqual(bytes.readableBytesView.map { $0 ^ 0x5a }, plain)
    XCTAssertEqual(try codec.decode(bytes, as: coding), message)
  }

  func testACodecForCodableTypes() throws {
    let codec: any Codec = PropertyListCodec()
    let bytes = try codec.encode(Point(x: 1, y: 2), as: .codable, deterministic: false)
    XCTAssertTrue(String(buffer: bytes).hasPrefix("bplist") || bytes.readableBytes > 0)
    XCTAssertEqual(try codec.decode(bytes, as: MessageCoding<Point>.codable), Point(x: 1, y: 2))
    XCTAssertThrowsError(
      try codec.encode(Google_Protobuf_Empty(), as: .protobuf, deterministic: false)
    )
  }

  func testAFamilyOfOnesOwn() throws {
    let coding = MessageCoding<Point>(
      binary: .init(
        encode: { point, _ in ByteBuffer(bytes: [UInt8(point.x), UInt8(point.y)]) },
        decode: { bytes, _ in
          let bytes = Array(bytes.readableBytesView)
          guard bytes.count == 2 else { throw ConnectError(code: .dataLoss) }
          return Point(x: Int(bytes[0]), y: Int(bytes[1]))
        }
      ),
      json: nil
    )
    let bytes = try ProtoCodec().encode(Point(x: 8, y: 9), as: coding, deterministic: false)
    XCTAssertEqual(try ProtoCodec().decode(bytes, as: coding), Point(x: 8, y: 9))
    XCTAssertThrowsError(try ProtoCodec().decode(ByteBuffer(), as: coding)) { error in
      XCTAssertEqual((error as? ConnectError)?.code, .dataLoss)
    }
  }
}
