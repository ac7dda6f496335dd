import Connect
import NIOCore
import NIOEmbedded
import NIOSSL
import NIOTLS
import XCTest

@testable import ConnectNIO

final class TLSHandshakeHandlerTests: XCTestCase {
  /// How a handshake ends after which no certificate of the server is known.
  private func outcome(refusing error: ConnectError?) throws -> Result<String?, ConnectError>? {
    var outcomes: [Result<String?, ConnectError>] = []
    var verified = 0
    let handler = TLSHandshakeHandler(
      timeout: .seconds(10),
      timeoutError: { ConnectError(code: .deadlineExceeded, message: "timeout") },
      describe: { error, _ in ConnectError(code: .unknown, message: "\(error)") },
      verify: { certificate in
        XCTAssertNil(certificate)
        verified += 1
        return error
      },
      completion: { outcomes.append($0) }
    )
    let channel = EmbeddedChannel()
    try channel.pipeline.syncOperations.addHandler(handler)
    channel.pipeline.fireUserInboundEventTriggered(TLSUserEvent.handshakeCompleted(negotiatedProtocol: "h2"))
    XCTAssertEqual(verified, 1)
    XCTAssertEqual(outcomes.count, 1)
    _ = try? channel.finish()
    return outcomes.first
  }

  /// It is up to the verification, which is asked in any case, whether there has to be one.
  func testServerWithoutCertificate() throws {
    let error = ConnectError(code: .unavailable, message: "no certificate")
    guard case .failure(let refused)? = try self.outcome(refusing: error) else {
      XCTFail("accepted")
      return
    }
    XCTAssertEqual(refused.message, "no certificate")
    guard case .success(let negotiated)? = try self.outcome(refusing: nil) else {
      XCTFail("refused")
      return
    }
    XCTAssertEqual(negotiated, "h2")
  }
}
