import Connect
import ConnectNIO
import NIOCore
import NIOPosix
import XCTest

/// Servers that are there no more, and whose connections nobody has closed.
final class DeadPeerTests: XCTestCase {
  /// The server's window is closed, so that what is sent stays here: as with a host that is gone, nothing is acknowledged.
  func testTheSystemGivesUpAConnectionWhoseDataIsNotAcknowledged() async throws {
    let server = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
      .childChannelOption(.autoRead, value: false)
      .bind(host: "127.0.0.1", port: 0).get()
    let port = try XCTUnwrap(server.localAddress?.port)
    let client = try TestClient(
      Origin(scheme: .http, host: "127.0.0.1", port: port),
      NIOHTTPClient.Configuration(timeouts: .init(unacknowledged: .milliseconds(300)))
    )
    let body = ByteBuffer(repeating: 0, count: 64 << 20)
    let failure = try await client.call().start(body: .complete(body)).failure()
    XCTAssertEqual(failure.error.code, .unavailable)
    XCTAssertTrue(failure.error.message?.contains("timed out") == true, "\(failure.error)")
    await client.shutdown()
    try await server.close()
  }
}
