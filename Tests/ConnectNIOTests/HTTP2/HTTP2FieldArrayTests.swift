internal import CNghttp2
internal import NIOCore
internal import TestSupport
internal import XCTest

@testable internal import Connect
@testable internal import ConnectNIO

final class HTTP2FieldArrayTests: XCTestCase {
  private var scheme: UnsafeBufferPointer<UInt8> { Self.bytes("https") }
  private var authority: UnsafeBufferPointer<UInt8> { Self.bytes("example.com") }

  func testFieldsInTheirOrder() {
    var array = HTTP2FieldArray()
    let trailers = Headers(
      (0..<100).map { Headers.Field(name: "name-\($0)", value: String(repeating: "v", count: $0)) }
    )
    array.replaceAll(withTrailers: trailers)
    XCTAssertEqual(Self.fields(of: &array), trailers.map { "\($0.name): \($0.value)" })
  }

  func testRequest() {
    var array = HTTP2FieldArray()
    self.replace(&array, headers: ["a": ["1"], "b": ["2"]], contentLength: 20)
    XCTAssertEqual(
      Self.fields(of: &array),
      [
        ":method: POST", ":scheme: https", ":authority: example.com", ":path: /p", "a: 1", "b: 2",
        "content-length: 20",
      ]
    )
  }

  /// The copies of headers that two requests have in common are used again; whatever comes between the two, each
  /// request has its own fields.
  func testRequestsThatResembleEachOther() {
    let long = String(repeating: "long ", count: 1_000)
    let lists: [Headers] = [
      [:], ["a": ["1"]], ["a": ["1"], "b": ["2"]], ["a": ["1"], "b": ["3"], "c": ["4"]], ["b": ["2"]],
      ["a": ["1"], "traceparent": ["t"]], ["a": ["1"], "b": [long], "c": ["4"]],
      Headers((0..<60).map { Headers.Field(name: "n\($0)", value: "\($0)") }),
    ]
    var random = SeededGenerator()
    var array = HTTP2FieldArray()
    for _ in 0..<2_000 {
      let headers = lists.randomElement(using: &random) ?? [:]
      let fields = headers.map { "\($0.name): \($0.value)" }
      if Int.random(in: 0..<4, using: &random) == 0 {
        array.replaceAll(withTrailers: headers)
        XCTAssertEqual(Self.fields(of: &array), fields)
        continue
      }
      let path = ["/p", "/another/path", "/\(long)"].randomElement(using: &random) ?? "/"
      let length = [nil, 0, 12_345].randomElement(using: &random) ?? nil
      self.replace(&array, path: path, headers: headers, contentLength: length)
      XCTAssertEqual(
        Self.fields(of: &array),
        [":method: POST", ":scheme: https", ":authority: example.com", ":path: \(path)"] + fields
          + (length.map { ["content-length: \($0)"] } ?? [])
      )
    }
  }

  func testSameHeadersAreNotCopiedAgain() {
    var array = HTTP2FieldArray()
    let headers: Headers = ["a": ["1"], "connect-timeout-ms": ["1"]]
    self.replace(&array, headers: headers, contentLength: 3)
    // Who copies again loses this.
    array.withFields { fields, _ in fields?[4].value.pointee = UInt8(ascii: "x") }
    self.replace(&array, path: "/q", headers: headers, contentLength: 45)
    XCTAssertEqual(
      Self.fields(of: &array).dropFirst(3),
      [":path: /q", "a: x", "connect-timeout-ms: 1", "content-length: 45"]
    )
    let flags = array.withFields { fields, _ in [fields?[4].flags, fields?[5].flags] }
    XCTAssertEqual(flags, [0, UInt8(NGHTTP2_NV_FLAG_NO_INDEX.rawValue)])
  }

  /// These are equal as strings of Swift.
  func testValuesThatDifferInBytesAlone() {
    for (first, second) in [("Jose\u{301}", "Jos\u{E9}"), ("a;b", "a\u{37E}b"), ("K", "\u{212A}")] {
      XCTAssertEqual(first, second)
      var array = HTTP2FieldArray()
      for value in [first, second, first] {
        self.replace(&array, headers: ["name": [value]], contentLength: nil)
        let bytes = array.withFields { fields, _ in
          fields.map { Array(UnsafeBufferPointer(start: $0[4].value, count: $0[4].valuelen)) }
        }
        XCTAssertEqual(bytes, Array(value.utf8))
      }
    }
  }

  /// What a large request needed is not kept for the life of the connection.
  func testMemoryIsGivenBack() {
    var array = HTTP2FieldArray()
    let capacity = array.capacity
    var headers: Headers = ["large": [String(repeating: "v", count: 8 << 20)]]
    for index in 0..<10_000 { headers.add(name: "name", value: "\(index)") }
    array.replaceAll(withTrailers: headers)
    XCTAssertGreaterThan(array.capacity, 8 << 20)
    array.replaceAll(withTrailers: ["a": ["b"]])
    XCTAssertEqual(array.capacity, capacity)
    XCTAssertEqual(array.listSize, 34)
    XCTAssertEqual(Self.fields(of: &array), ["a: b"])
  }

  /// Before and behind requests without one.
  func testAuthorityOfACall() {
    var array = HTTP2FieldArray()
    for authority in [nil, "api.example:8443", nil, "b", "a", nil] {
      for path in ["/p", "/another/path"] {
        var request = HTTPStreamRequest(method: .post, target: path, headers: ["a": ["1"]], body: .streamed)
        request.authority = authority
        array.replaceAll(with: request, scheme: self.scheme, authority: self.authority, contentLength: 20)
        XCTAssertEqual(
          Self.fields(of: &array),
          [
            ":method: POST", ":scheme: https", ":authority: \(authority ?? "example.com")", ":path: \(path)",
            "a: 1",
            "content-length: 20",
          ]
        )
      }
    }
    array.replaceAll(withTrailers: ["a": ["b"]])
    XCTAssertEqual(Self.fields(of: &array), ["a: b"])
  }

  // MARK: Helpers

  private func replace(
    _ array: inout HTTP2FieldArray,
    path: String = "/p",
    headers: Headers,
    contentLength: Int?
  ) {
    array.replaceAll(
      with: HTTPStreamRequest(method: .post, target: path, headers: headers, body: .streamed),
      scheme: self.scheme,
      authority: self.authority,
      contentLength: contentLength
    )
  }

  private static func fields(of array: inout HTTP2FieldArray) -> [String] {
    array.withFields { fields, count in
      (0..<count).compactMap { index -> String? in
        guard let field = fields?[index] else { return nil }
        let name = UnsafeBufferPointer(start: field.name, count: field.namelen)
        let value = UnsafeBufferPointer(start: field.value, count: field.valuelen)
        return "\(String(decoding: name, as: UTF8.self)): \(String(decoding: value, as: UTF8.self))"
      }
    }
  }

  private static func bytes(_ text: StaticString) -> UnsafeBufferPointer<UInt8> {
    UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
  }
}
