import Connect
import XCTest

@testable import connectrpc

final class FailureTests: XCTestCase {
  func testAdviceIsThatOfTheCommandLine() {
    for (message, expected) in [
      (
        "it drops trailers: set networkProtocol to .grpcWeb (POST /a)",
        "it drops trailers: give --protocol grpc-web (POST /a)"
      ),
      ("set networkProtocol to .grpc; for another, go", "give --protocol grpc; for another, go"),
      (
        "set networkProtocol to .connect or .grpcWeb, and leave the configuration's version at .automatic",
        "give --protocol connect or grpc-web, and no --http"
      ),
      ("anything else", "anything else"),
    ] {
      XCTAssertEqual(Failure.advising(message), expected)
      XCTAssertTrue(Failure(ConnectError(code: .internalError, message: message)).message.hasSuffix(expected))
    }
  }
}
