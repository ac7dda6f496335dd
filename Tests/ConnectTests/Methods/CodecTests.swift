import Connect
import Foundation
import NIOCore
import SwiftProtobuf
import XCTest

final class CodecTests: XCTestCase {
  private let coding = MessageCoding<Google_Protobuf_Field>.protobuf

  private func field() -> Google_Protobuf_Field {
    Google_Protobuf_Field.with {
      $0.kind = .typeString
      $0.typeURL = "type.example/ü"
      $0.number = 7
    }
  }

  private func labels(_ count: Int) -> LabelsMessage {
    LabelsMessage.with { message in
      for index in 0..<count { message.labels["key \(index)"] = "value" }
    }
  }

  // MARK: Protobuf

  func testNames() {
    XCTAssertEqual(ProtoCodec().name, "proto")
    XCTAssertEqual(JSONCodec().name, "json")
  }

  func testBinaryRoundTrip() throws {
    let codec = ProtoCodec()
    let bytes = try codec.encode(self.field(), as: self.coding, deterministic: false)
    XCTAssertEqual(Array(bytes.readableBytesView), try self.field().serializedBytes())
    XCTAssertEqual(try codec.decode(bytes, as: self.coding), self.field())
  }

  func testEncodedMessagesHaveRoomForAnEnvelopePrefix() throws {
    let binary = try ProtoCodec().encode(self.field(), as: self.coding, deterministic: false)
    XCTAssertEqual(binary.readerIndex, 5)
    let json = try JSONCodec().encode(self.field(), as: self.coding, deterministic: false)
    XCTAssertEqual(json.readerIndex, 5)
    let plain = try JSONCodec().encode(Person(name: "x"), as: .codable, deterministic: false)
    XCTAssertEqual(plain.readerIndex, 5)
  }

  func testEmptyMessages() throws {
    let coding = MessageCoding<Google_Protobuf_Empty>.protobuf
    let bytes = try ProtoCodec().encode(Google_Protobuf_Empty(), as: coding, deterministic: false)
    XCTAssertEqual(bytes.readableBytes, 0)
    XCTAssertEqual(try ProtoCodec().decode(ByteBuffer(), as: coding), Google_Protobuf_Empty())
    let json = try JSONCodec().encode(Google_Protobuf_Empty(), as: coding, deterministic: false)
    XCTAssertEqual(String(buffer: json), "{}")
    XCTAssertThrowsError(try JSONCodec().decode(ByteBuffer(), as: coding), "no bytes are no JSON")
  }

  func testDecodingReadsOnlyTheReadableBytes() throws {
    var bytes = try ProtoCodec().encode(self.field(), as: self.coding, deterministic: false)
    let length = bytes.readableBytes
    bytes.writeBytes([0xff, 0xff, 0xff])
    let slice = try XCTUnwrap(bytes.getSlice(at: bytes.readerIndex, length: length))
    XCTAssertEqual(try ProtoCodec().decode(slice, as: self.coding), self.field())
    XCTAssertThrowsError(try ProtoCodec().decode(bytes, as: self.coding))
  }

  func testDeterministicBinary() throws {
    let coding = MessageCoding<LabelsMessage>.protobuf
    let expected = try ProtoCodec().encode(self.labels(50), as: coding, deterministic: true)
    for _ in 0..<20 {
      XCTAssertEqual(try ProtoCodec().encode(self.labels(50), as: coding, deterministic: true), expected)
      XCTAssertEqual(
        try ProtoCodec(deterministic: true).encode(self.labels(50), as: coding, deterministic: false),
        expected
      )
    }
  }

  func testJSONOfProtobufMessages() throws {
    let codec = JSONCodec()
    let bytes = try codec.encode(self.field(), as: self.coding, deterministic: false)
    XCTAssertEqual(
      String(buffer: bytes),
      #"{"kind":"TYPE_STRING","number":7,"typeUrl":"type.example/ü"}"#
    )
    XCTAssertEqual(try codec.decode(bytes, as: self.coding), self.field())
  }

  func testJSONOptionsOfProtobufMessages() throws {
    let codec = JSONCodec(alwaysPrintEnumsAsInts: true, preserveProtoFieldNames: true)
    let bytes = try codec.encode(self.field(), as: self.coding, deterministic: false)
    XCTAssertEqual(String(buffer: bytes), #"{"kind":9,"number":7,"type_url":"type.example/ü"}"#)
    XCTAssertEqual(try JSONCodec().decode(bytes, as: self.coding), self.field())

    let unknown = ByteBuffer(string: #"{"number":7,"other":{"a":[1]}}"#)
    XCTAssertEqual(try JSONCodec().decode(unknown, as: self.coding).number, 7)
    XCTAssertThrowsError(try JSONCodec(ignoreUnknownFields: false).decode(unknown, as: self.coding))

    let map = MessageCoding<LabelsMessage>.protobuf
    let expected = try JSONCodec().encode(self.labels(50), as: map, deterministic: true)
    for _ in 0..<20 {
      XCTAssertEqual(
        try JSONCodec(deterministic: true).encode(self.labels(50), as: map, deterministic: false),
        expected
      )
    }
  }

  func testMalformedProtobuf() {
    XCTAssertThrowsError(try ProtoCodec().decode(ByteBuffer(bytes: [0xff]), as: self.coding))
    XCTAssertThrowsError(try JSONCodec().decode(ByteBuffer(string: "{"), as: self.coding))
  }

  // MARK: Codable

  private struct Person: Codable, Hashable {
    var name: String
    var born: Date?
    var photo: Data?
    var height: Double?
  }

  func testJSONOfCodableTypes() throws {
    let person = Person(
      name: "a/b",
      born: Date(timeIntervalSince1970: 0.25),
      photo: Data([1, 2, 3]),
      height: 1.5
    )
    let bytes = try JSONCodec().encode(person, as: .codable, deterministic: true)
    XCTAssertEqual(
      String(buffer: bytes),
      #"{"born":"1970-01-01T00:00:00.250Z","height":1.5,"name":"a/b","photo":"AQID"}"#
    )
    XCTAssertEqual(try JSONCodec().decode(bytes, as: MessageCoding<Person>.codable), person)
  }

  func testDatesOfCodableTypes() throws {
    func date(_ text: String) throws -> Date? {
      try JSONCodec().decode(
        ByteBuffer(string: #"{"name":"","born":"\#(text)"}"#),
        as: MessageCoding<Person>.codable
      ).born
    }
    XCTAssertEqual(try date("2024-02-29T12:00:00Z"), Date(timeIntervalSince1970: 1_709_208_000))
    XCTAssertEqual(try date("2024-02-29T14:00:00+02:00"), Date(timeIntervalSince1970: 1_709_208_000))
    let fractional = try XCTUnwrap(date("2024-02-29T12:00:00.5Z"))
    XCTAssertEqual(fractional.timeIntervalSince1970, 1_709_208_000.5, accuracy: 0.001)
    for fraction in ["123", "123456", "123456789"] {
      let fractional = try XCTUnwrap(date("2024-02-29T12:00:00.\(fraction)Z"))
      XCTAssertEqual(fractional.timeIntervalSince1970, 1_709_208_000.123, accuracy: 0.001, fraction)
    }
    XCTAssertThrowsError(try date("yesterday"))
    let whole = Person(name: "", born: Date(timeIntervalSince1970: 1_709_208_000))
    XCTAssertEqual(
      String(buffer: try JSONCodec().encode(whole, as: .codable, deterministic: true)),
      #"{"born":"2024-02-29T12:00:00Z","name":""}"#
    )
    for (seconds, text) in [
      (-63_114_076_800.0, "0001-01-01T00:00:00Z"), (252_423_993_599.0, "9999-12-31T23:59:59Z"),
    ] {
      let bytes = try JSONCodec().encode(
        Person(name: "", born: Date(timeIntervalSinceReferenceDate: seconds)),
        as: .codable,
        deterministic: true
      )
      XCTAssertEqual(String(buffer: bytes), #"{"born":"\#(text)","name":""}"#)
    }
    for seconds in [.infinity, -.infinity, .nan, 1e300, -63_114_076_801, 252_423_993_600] {
      let person = Person(name: "", born: Date(timeIntervalSinceReferenceDate: seconds))
      XCTAssertThrowsError(try JSONCodec().encode(person, as: .codable, deterministic: true), "\(seconds)")
    }
  }

  func testNumbersThatJSONLacks() throws {
    for (number, text) in [(Double.infinity, "Infinity"), (-.infinity, "-Infinity"), (.nan, "NaN")] {
      let bytes = try JSONCodec().encode(Person(name: "", height: number), as: .codable, deterministic: true)
      XCTAssertEqual(String(buffer: bytes), #"{"height":"\#(text)","name":""}"#)
      let decoded = try XCTUnwrap(JSONCodec().decode(bytes, as: MessageCoding<Person>.codable).height)
      XCTAssertEqual(decoded.isNaN, number.isNaN)
      if !number.isNaN { XCTAssertEqual(decoded, number) }
    }
  }

  func testCodableIsSafeToUseFromManyThreads() {
    let coding = MessageCoding<Person>.codable
    DispatchQueue.concurrentPerform(iterations: 500) { index in
      let person = Person(name: "\(index)", born: Date(timeIntervalSince1970: Double(index)))
      let bytes = try? JSONCodec().encode(person, as: coding, deterministic: index % 2 == 0)
      XCTAssertEqual(bytes.flatMap { try? JSONCodec().decode($0, as: coding) }, person)
    }
  }

  func testCodableHasNoBinaryEncoding() throws {
    for attempt in [
      { _ = try ProtoCodec().encode(Person(name: ""), as: .codable, deterministic: false) },
      { _ = try ProtoCodec().decode(ByteBuffer(), as: MessageCoding<Person>.codable) },
    ] {
      XCTAssertThrowsError(try attempt()) { error in
        let error = error as? ConnectError
        XCTAssertEqual(error?.code, .internalError)
        XCTAssertEqual(error?.message, "Person has no binary encoding, which the codec 'proto' needs")
      }
    }
    let binaryOnly = MessageCoding<Person>(binary: nil, json: nil)
    XCTAssertThrowsError(try JSONCodec().encode(Person(name: ""), as: binaryOnly, deterministic: false))
    XCTAssertThrowsError(try JSONCodec().decode(ByteBuffer(), as: binaryOnly))
  }

  func testNestingThatIsTooDeepIsAnError() {
    let deep = String(repeating: "[", count: 100_000)
    XCTAssertThrowsError(
      try JSONCodec().decode(ByteBuffer(string: #"{"name":\#(deep)"#), as: MessageCoding<Person>.codable)
    )
    XCTAssertThrowsError(
      try JSONCodec().decode(
        ByteBuffer(string: #"{"fields":{"a":\#(deep)"#),
        as: MessageCoding<Google_Protobuf_Struct>.protobuf
      )
    )
  }

  func testBuffersAndData() {
    let data = Data([1, 2, 3])
    XCTAssertEqual(Data(ByteBuffer(bytes: data).readableBytesView), data)
  }
}
