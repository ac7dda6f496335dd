internal import CNghttp2
internal import XCTest

@testable internal import ConnectNIO

final class HTTP2FieldArrayTests: XCTestCase {
  func testFieldsInTheirOrder() {
    var array = HTTP2FieldArray()
    for index in 0..<100 { array.append(name: "name-\(index)", value: String(repeating: "v", count: index)) }
    let fields = array.withFields { fields, count in
      (0..<count).compactMap { index -> String? in
        guard let field = fields?[index] else { return nil }
        let name = UnsafeBufferPointer(start: field.name, count: field.namelen)
        return "\(String(decoding: name, as: UTF8.self)) \(field.valuelen)"
      }
    }
    XCTAssertEqual(fields, (0..<100).map { "name-\($0) \($0)" })
  }

  /// What a large request needed is not kept for the life of the connection.
  func testMemoryIsGivenBack() {
    var array = HTTP2FieldArray()
    let capacity = array.capacity
    array.append(name: "large", value: String(repeating: "v", count: 8 << 20))
    for index in 0..<10_000 { array.append(name: "name", value: "\(index)") }
    XCTAssertGreaterThan(array.capacity, 8 << 20)
    array.removeAll()
    XCTAssertEqual(array.capacity, capacity)
    array.append(name: "a", value: "b")
    XCTAssertEqual(array.listSize, 34)
  }
}
