import Connect
import NIOCore
import NIOEmbedded
import NIOSSL
import NIOTLS
import XCTest

@testable import ConnectNIO

final class TLSHandshakeHandlerTests: XCTestCase {
  /// How a handshake ends that NIOSSL has found nothing wrong with.
  private func outcome(isTrusted: Bool) throws -> Result<String?, ConnectError>? {
    var outcomes: [Result<String?, ConnectError>] = []
    let handler = TLSHandshakeHandler(
      timeout: .seconds(10),
      timeoutError: { ConnectError(code: .deadlineExceeded, message: "timeout") },
      describe: { error in ConnectError(code: .unknown, message: "\(error)") },
      isTrusted: { isTrusted },
      completion: { outcomes.append($0) }
    )
    let channel = EmbeddedChannel()
    try channel.pipeline.syncOperations.addHandler(handler)
    channel.pipeline.fireUserInboundEventTriggered(TLSUserEvent.handshakeCompleted(negotiatedProtocol: "h2"))
    XCTAssertEqual(outcomes.count, 1)
    _ = try? channel.finish()
    return outcomes.first
  }

  /// Whether there has to be a verification is not up to NIOSSL.
  func testServerThatWasNotVerified() throws {
    guard case .failure(let refused)? = try self.outcome(isTrusted: false) else {
      XCTFail("accepted")
      return
    }
    XCTAssertEqual(refused.code, .unknown)
    guard case .success(let negotiated)? = try self.outcome(isTrusted: true) else {
      XCTFail("refused")
      return
    }
    XCTAssertEqual(negotiated, "h2")
  }
}
