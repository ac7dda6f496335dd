internal import CAllocations
internal import Connect
internal import ConnectChannels
internal import ConnectNIO
internal import Foundation
internal import LoopbackServer
internal import SwiftProtobuf
import XCTest

/// What a connection keeps of a large message that it once carried.
final class ConnectionMemoryTests: XCTestCase {
  private static let connections = 30
  private static let messageSize = 1 << 20

  /// Opens connections of one client. Each carries a message of `size` bytes in both directions, and then an idle stream, so
  /// that it stays.
  ///
  /// - Returns: What they take while they are idle, in bytes for each.
  private func bytesPerConnection(isEncrypted: Bool, messageSize size: Int) async throws -> Int {
    let server = try await PythonServer.shared(.grpc)
    let port = try server.port(isEncrypted ? "tls" : "plain")
    var configuration = NIOHTTPClient.Configuration.defaults
    configuration.channel.resolver = StaticResolver([try XCTUnwrap(Endpoint("127.0.0.1:\(port)"))])
    configuration.tls.trustRoots = .pemBytes(Array(try server.text("authority").utf8))
    configuration.tls.serverName = "localhost"
    let httpClient = NIOHTTPClient(configuration: configuration)
    let before = Int(allocations_bytes())
    var streams: [BidirectionalStream<ConverseRequest, ConverseResponse>] = []
    for index in 0..<Self.connections {
      let host = "\(isEncrypted ? "https" : "http")://host-\(index).test:\(port)"
      let config = ProtocolClientConfig(host: host, networkProtocol: .grpc)
      let client = ProtocolClient(httpClient: httpClient, config: config)
      let stream = client.bidirectionalStream(TestMethods.converse)
      try await stream.send(ConverseRequest())
      streams.append(stream)
      let request = EchoRequest.with { $0.payload.data = Data(repeating: 7, count: size) }
      let response = await client.unary(
        TestMethods.echo,
        request,
        options: CallOptions(timeout: .seconds(60))
      )
      XCTAssertEqual(response.message?.payload.data.count, size, "\(String(describing: response.error))")
    }
    // What event loops do after a call.
    try await Task.sleep(for: .milliseconds(300))
    let after = Int(allocations_bytes())
    for stream in streams { stream.cancel() }
    await httpClient.shutdown(within: .seconds(10))
    return (after - before) / Self.connections
  }

  func testConnectionsDoNotKeepWhatTheyCarried() async throws {
    try XCTSkipIf(allocations_count() == 0, "allocations are not counted in this build")
    for isEncrypted in [false, true] {
      _ = try await self.bytesPerConnection(isEncrypted: isEncrypted, messageSize: 20)
      let small = try await self.bytesPerConnection(isEncrypted: isEncrypted, messageSize: 20)
      let large = try await self.bytesPerConnection(isEncrypted: isEncrypted, messageSize: Self.messageSize)
      print(
        "TLS \(isEncrypted): a connection takes \(small) bytes, \(large) after a message of \(Self.messageSize)"
      )
      XCTAssertLessThan(large - small, Self.messageSize / 2, "TLS: \(isEncrypted)")
    }
  }
}
