import Connect
import ConnectNIO
import NIOCore
import NIOPosix
import XCTest

/// Servers that are there no more, or do nothing, and whose connections nobody has closed. With default settings but for times.
final class DeadPeerTests: XCTestCase {
  /// Before, each call waited for its own deadline on the same dead connection.
  func testTheNextCallDoesNotUseASilentConnection() async throws {
    let server = try await RawServer { connection in
      while let frame = connection.takeFrame() {
        switch frame.kind {
        case .settings where !frame.isAck:
          connection.send(.settings(maxConcurrentStreams: 100), .settingsAck)
        case .headers where connection.index > 0:
          connection.send(.headers(frame.streamID), .data(frame.streamID, "pong", end: true))
        default:
          break
        }
      }
    }
    let client = try TestClient(server, NIOHTTPClient.Configuration(version: .http2Only))
    let first = client.call().start()
    _ = try await first.connectionInfo()
    try await client.eventLoop.scheduleTask(in: .milliseconds(150)) { first.cancel() }.futureResult.get()
    let text = try await client.call().start().response().text
    XCTAssertEqual(text, "pong")
    XCTAssertEqual(server.accepted, 2)
    await client.shutdown()
    await server.close()
  }

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
