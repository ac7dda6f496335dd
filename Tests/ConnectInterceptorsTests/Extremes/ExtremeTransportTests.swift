import Connect
import ConnectInterceptors
import ConnectNIO
import ConnectTesting
import LoopbackServer
import SwiftProtobuf
import XCTest

/// Calls over sockets by transports whose configurations have extreme numbers. Nothing traps, and each call ends.
final class ExtremeTransportTests: XCTestCase {
  private typealias Configuration = NIOHTTPClient.Configuration

  private func makeCalls(_ configuration: NIOHTTPClient.Configuration, _ server: LoopbackServer) async {
    let versions: [Configuration.HTTPVersion] = [.http1Only, .http2Only]
    for version in versions {
      var configuration = configuration
      configuration.version = version
      let httpClient = NIOHTTPClient(configuration: configuration)
      let client = ProtocolClient(
        httpClient: httpClient,
        config: ProtocolClientConfig(host: server.url, timeout: .seconds(30))
      )
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<3 {
          group.addTask { _ = await client.unary(TestMethods.echo, .with { $0.payload.text = "x" }) }
        }
      }
      await httpClient.shutdown(within: .zero)
    }
  }

  func testTransport() async throws {
    let server = try await LoopbackServer.start()
    try await withExtremes(
      of: Configuration.Limits.defaults,
      [
        .init("http1ConnectionsPerAddress", \.http1ConnectionsPerAddress),
        .init("http2ConnectionsPerAddress", \.http2ConnectionsPerAddress),
        .init("waitingCalls", \.waitingCalls),
      ]
    ) { await self.makeCalls(.init(limits: $0), server) }
    try await withExtremes(
      of: Configuration.Timeouts.defaults,
      [.init("connect", \.connect), .init("idle", \.idle), .init("unacknowledged", \.unacknowledged)]
    ) { await self.makeCalls(.init(timeouts: $0), server) }
    try await withExtremes(
      of: Configuration.HTTP1.defaults,
      [.init("responseWindow", \.responseWindow), .init("maxHeaderListSize", \.maxHeaderListSize)]
    ) { await self.makeCalls(.init(http1: $0), server) }
    try await withExtremes(
      of: HTTP2Configuration.defaults,
      [
        .init("initialStreamWindow", \.initialStreamWindow),
        .init("connectionWindow", \.connectionWindow),
        .init("maxFrameSize", \.maxFrameSize), .init("maxHeaderListSize", \.maxHeaderListSize),
        .init("silenceLimit", \.silenceLimit),
      ]
    ) { await self.makeCalls(.init(http2: $0), server) }
    try await withExtremes(
      of: HTTP2Configuration.Keepalive(interval: .milliseconds(5), pingsWithoutStreams: true),
      [.init("interval", \.interval), .init("timeout", \.timeout)]
    ) { await self.makeCalls(.init(http2: .init(keepalive: $0)), server) }
    await server.stop()
  }

  func testTLS() async throws {
    let certificates = try await TestCertificates.make()
    let server = try await LoopbackServer.start(.tls(certificates))
    let trustRoots = Configuration.TLS.TrustRoots.pemBytes(Array(certificates.authorityPEM.utf8))
    try await withExtremes(
      of: Configuration.TLS(trustRoots: trustRoots),
      [.init("fileCheckInterval", \.fileCheckInterval)]
    ) { await self.makeCalls(.init(tls: $0), server) }
    await server.stop()
  }

  func testShutdown() async throws {
    let server = try await LoopbackServer.start()
    for limit in Extremes.durations {
      let httpClient = NIOHTTPClient()
      let client = ProtocolClient(
        httpClient: httpClient,
        config: ProtocolClientConfig(host: server.url, timeout: .seconds(30))
      )
      let code = await client.unary(TestMethods.echo, .init()).code
      XCTAssertEqual(code, .ok)
      await httpClient.shutdown(within: limit)
    }
    await server.stop()
  }
}
