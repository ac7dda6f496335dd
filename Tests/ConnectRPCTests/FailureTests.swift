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
      (
        "over the limit of 5 bytes (maximumReceivedMessageSize)", "over the limit of 5 bytes"
      ),
      (
        "which is the limit; see NIOHTTPClient.Configuration.Limits.waitingCalls",
        "which is the limit; make fewer calls at a time"
      ),
      ("did not offer (see ProtocolClientConfig.compression)", "did not offer"),
      ("anything else", "anything else"),
    ] {
      XCTAssertEqual(Failure.advising(message), expected)
      XCTAssertTrue(Failure(ConnectError(code: .internalError, message: message)).message.hasSuffix(expected))
    }
  }

  /// Files of the user are arguments; files of a server are its answer.
  func testWhoseFaultItIs() {
    let error = ConnectError(code: .invalidArgument, message: "no file")
    XCTAssertThrowsError(try Failure.local { throw error }) { XCTAssertEqual(Failure($0).exitCode, 64) }
    XCTAssertThrowsError(try Failure.reflected { throw error }) {
      XCTAssertEqual(Failure($0).exitCode, 64 + 13)
      XCTAssertTrue(Failure($0).message.contains("no file"))
    }
  }
}
