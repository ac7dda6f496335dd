internal import Connect
internal import LoopbackServer
internal import SwiftProtobuf
import XCTest

extension ProtocolClient {
  /// Sends messages on one stream, each after the answer to the previous one. Expects each answer and a successful end.
  func expectRoundTrips(
    _ count: Int,
    _ what: String,
    file: StaticString = #filePath,
    line: UInt = #line
  ) async throws {
    let stream = self.bidirectionalStream(TestMethods.converse)
    var answers = stream.messages.makeAsyncIterator()
    for index in 0..<count {
      try await stream.send(.with { $0.payload.small = Int32(index) })
      let answer = try await answers.next()
      guard answer?.payload.small == Int32(index), answer?.index == UInt32(index) else {
        let text = "\(what): the answer to message \(index) is \(String(describing: answer))"
        return XCTFail(text, file: file, line: line)
      }
    }
    stream.finish()
    let end = try await answers.next()
    XCTAssertNil(end, what, file: file, line: line)
  }
}
