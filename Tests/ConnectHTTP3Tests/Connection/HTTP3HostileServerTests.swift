internal import CQUICPeer
internal import Connect
internal import NIOCore
internal import TestSupport
internal import XCTest

@testable internal import ConnectHTTP3

/// Servers, and others on the path, that do what QUIC and HTTP/3 do not allow, or hardly foresee.
final class HTTP3HostileServerTests: XCTestCase {
  private func makePeer(
    care: HTTP3ConnectionCare = HTTP3ConnectionCare(),
    _ change: (inout quic_peer_options) -> Void = { _ in }
  ) async throws -> HTTP3TestPeer {
    try HTTP3TestPeer(try await SharedCertificates.shared.get(), care: care, change)
  }

  // MARK: The handshake

  /// The confirmation comes in the same read as the server's part of the handshake.
  func testHandshakeThatIsConfirmedTooEarly() async throws {
    for repeats in [false, true] {
      let peer = try await self.makePeer { $0.confirms_early = 1 }
      peer.coalesces = true
      var first: [UInt8]?
      peer.network = { direction, datagram in
        guard repeats, direction == .toClient else { return [datagram] }
        first = first ?? datagram
        return [datagram, first ?? []]
      }
      try peer.elapse(.milliseconds(100))
      XCTAssertEqual(peer.handshakeError?.code, .unavailable)
      XCTAssertEqual(peer.handshakeError?.message, "https://localhost broke QUIC: ERR_PROTO")
      XCTAssertEqual(peer.delegate.events, [])
      XCTAssertNotEqual(peer.serverError, 0, "the server was told")
    }
  }
}
