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
        "set networkProtocol to .connect or .grpcWeb, and leave the configuration's version at .automatic, "
          + "or set it to .http1Only with a connected socket",
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

  /// The lines of a cassette's difference stay, and details follow.
  func testFurtherLines() {
    let miss = ConnectError(
      code: .failedPrecondition,
      message: "the cassette has no answer to /a.B/C (grpc+proto)\nasked:\n- {}\n+ \u{1b}[2J"
    )
    let failure = Failure(miss, details: ["a.B: {}"], isReplayed: true)
    XCTAssertEqual(
      failure.message,
      "failed_precondition (9): the cassette has no answer to /a.B/C (grpc+proto)"
    )
    XCTAssertEqual(failure.exitCode, 64 + 9)
    XCTAssertEqual(failure.furtherLines.dropLast(), ["  asked:", "  - {}", "  + \u{fffd}[2J"])
    XCTAssertTrue(failure.furtherLines.last?.hasSuffix("a.B: {}") == true)
    // Others come from servers, and are one line.
    let other = Failure(ConnectError(code: .notFound, message: "a\nb"))
    XCTAssertEqual(other.message, "not_found (5): a\nb")
    XCTAssertEqual(other.furtherLines, [])
  }

  /// What the client refuses is usage; what a cassette refuses in a server's place is its answer.
  func testExitCodes() {
    for (code, isReplayed, exitCode) in [
      (Code.failedPrecondition, false, 64), (.failedPrecondition, true, 73), (.invalidArgument, true, 64),
      (.notFound, true, 69),
    ] as [(Code, Bool, Int32)] {
      XCTAssertEqual(
        Failure(ConnectError(code: code), details: nil, isReplayed: isReplayed).exitCode,
        exitCode,
        "\(code), \(isReplayed)"
      )
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
