import Foundation
import XCTest

@testable import ConnectCodegen

final class LargeServiceTests: XCTestCase {
  /// In seconds of processor time, so that a busy machine does not count.
  private func time(_ body: () throws -> Void) rethrows -> Double {
    let start = clock()
    try body()
    return Double(clock() - start) / Double(CLOCKS_PER_SEC)
  }

  func test500MethodsGenerateWithinTwoSeconds() throws {
    let methods = (0..<500).map { index in
      let streams = (index % 2 == 0 ? "" : "stream ", index % 4 < 2 ? "" : "stream ")
      return "// Method \(index).\nrpc Method\(index)(\(streams.0)M) returns (\(streams.1)M);"
    }
    let text = "syntax = \"proto3\"; package p; message M {} service S { \(methods.joined(separator: "\n")) }"
    let request = try ProtoFiles.request(texts: ["large.proto": text], "GenerateCallbackMethods=true")
    let seconds = try self.time {
      let stub = try generate(request, StubGenerator())
      XCTAssertEqual(stub.matches(of: /static let/).count, 500)
      let mock = try generate(request, MockGenerator())
      XCTAssertEqual(mock.matches(of: /public let mock|  let mock/).count, 500)
    }
    XCTAssertLessThan(seconds, 2)
  }
}
