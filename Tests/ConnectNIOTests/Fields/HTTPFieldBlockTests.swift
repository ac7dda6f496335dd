internal import Connect
internal import XCTest

@testable internal import ConnectNIO

final class HTTPFieldBlockTests: XCTestCase {
  private func block(
    _ fields: [(String, String)],
    in gathering: inout HTTPFieldBlock,
    limit: Int = 1 << 16
  ) -> Headers {
    gathering.begin()
    for (name, value) in fields {
      Array(name.utf8).withUnsafeBufferPointer { name in
        Array(value.utf8).withUnsafeBufferPointer { value in
          gathering.add(name: name, value: value, limit: limit)
        }
      }
    }
    return gathering.finish()
  }

  /// Whatever came before, a block has its own fields, in their order.
  func testBlocksThatResembleTheOneBefore() {
    let blocks: [[(String, String)]] = [
      [("a", "1"), ("b", "2"), ("c", "3")],
      [("a", "1"), ("b", "2"), ("c", "3")],
      [("a", "1"), ("b", "2")],
      [("a", "1"), ("b", "3"), ("c", "3")],
      [("a", "1"), ("b", "3"), ("c", "3"), ("d", "")],
      [("a", "11")],
      [],
      [("a", "1")],
      [("a", "1"), ("a", "1"), ("a", "\u{e9}🚀, a value that is no small string")],
      [("a", "1"), ("a", "1"), ("a", "\u{e9}🚀, a value that is no small string")],
    ]
    var gathering = HTTPFieldBlock()
    for fields in blocks {
      let received = self.block(fields, in: &gathering)
      XCTAssertEqual(received.map(\.name), fields.map(\.0))
      XCTAssertEqual(received.map(\.value), fields.map(\.1))
    }
  }

  /// A block that its frame broke off leaves nothing to the next one.
  func testABlockThatIsNotFinished() {
    var gathering = HTTPFieldBlock()
    _ = self.block([("a", "1"), ("b", "2")], in: &gathering)
    gathering.begin()
    Array("x".utf8).withUnsafeBufferPointer { gathering.add(name: $0, value: $0, limit: 100) }
    XCTAssertEqual(self.block([("a", "1")], in: &gathering).map(\.name), ["a"])
    XCTAssertEqual(gathering.size, 0)
  }

  func testWhatIsOverTheLimitIsCountedAndNotKept() {
    var gathering = HTTPFieldBlock()
    let long = String(repeating: "v", count: 100)
    gathering.begin()
    for name in ["a", "b", "c"] {
      Array(name.utf8).withUnsafeBufferPointer { name in
        Array(long.utf8).withUnsafeBufferPointer { gathering.add(name: name, value: $0, limit: 150) }
      }
    }
    XCTAssertEqual(gathering.size, 3 * 133)
    XCTAssertTrue(gathering.finish().isEmpty)
    XCTAssertEqual(self.block([("a", "1")], in: &gathering).map(\.value), ["1"])
  }
}
