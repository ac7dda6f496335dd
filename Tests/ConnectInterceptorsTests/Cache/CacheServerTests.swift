import Connect
import ConnectInterceptors
import ConnectNIO
import ConnectTesting
import LoopbackServer
import NIOCore
import SwiftProtobuf
import XCTest

/// The cache, and hashes in place of requests, against a server over sockets.
final class CacheServerTests: XCTestCase {
  private func run(
    _ version: NIOHTTPClient.Configuration.HTTPVersion,
    interceptors: [InterceptorFactory],
    networkProtocol: NetworkProtocol = .connect,
    unaryGET: UnaryGET = .enabledForLimitedPayloadSizes(maxBytes: 4096),
    retries: ProtocolClientConfig.Retries = .defaults,
    _ body: (ProtocolClient, LoopbackServer) async throws -> Void
  ) async throws {
    let server = try await LoopbackServer.start()
    let httpClient = NIOHTTPClient(configuration: NIOHTTPClient.Configuration(version: version))
    let client = ProtocolClient(
      httpClient: httpClient,
      config: ProtocolClientConfig(
        host: server.url,
        networkProtocol: networkProtocol,
        interceptors: interceptors,
        timeout: .seconds(60),
        unaryGET: unaryGET,
        retries: retries
      )
    )
    do { try await body(client, server) } catch { XCTFail("\(error)") }
    await httpClient.shutdown(within: .seconds(10))
    await server.stop()
  }

  // MARK: Cache

  func testThousandCallsMissAtTheSameTime() async throws {
    for version in [NIOHTTPClient.Configuration.HTTPVersion.http1Only, .http2Only] {
      let cache = ResponseCache(configuration: .init(timeToLive: .seconds(1000)))
      try await self.run(
        version,
        interceptors: [{ _ in CacheReadInterceptor(cache) }, { _ in CacheWriteInterceptor(cache) }]
      ) { client, server in
        let wrong = await withTaskGroup(of: String?.self) { group in
          for index in 0..<1000 {
            group.addTask {
              let key = "key \(index % 10)"
              let response = await client.unary(TestMethods.lookup, .with { $0.key = key })
              return response.message?.value == "value of \(key)" ? nil : "\(key): \(response)"
            }
          }
          return await group.compactMap(\.self).reduce(into: []) { $0.append($1) }
        }
        XCTAssertEqual(wrong, [])
        XCTAssertEqual(server.requests.count, 10)
        XCTAssertEqual(Set(server.requests.map(\.method)), ["GET"])
      }
    }
  }

  func testRevalidation() async throws {
    let executor = VirtualExecutor()
    let cache = ResponseCache(clock: executor.clock)
    try await self.run(
      .http2Only,
      interceptors: [{ _ in CacheReadInterceptor(cache) }, { _ in CacheWriteInterceptor(cache) }]
    ) { client, server in
      server.onRaw(TestMethods.lookup.path) { request, responder in
        let isSame = request.record.headers.first("if-none-match") == "\"v1\""
        let bytes: [UInt8] = try LookupResponse.with { $0.value = "v1" }.serializedBytes()
        try await responder.respond(
          status: isSame ? 304 : 200,
          headers: ["content-type": "application/proto", "etag": "\"v1\"", "cache-control": "max-age=10"],
          body: isSame ? ByteBuffer() : ByteBuffer(bytes: bytes)
        )
      }
      for _ in 0..<3 {
        for _ in 0..<2 {
          let response = await client.unary(TestMethods.lookup, .with { $0.key = "k" })
          XCTAssertEqual(response.message?.value, "v1", "\(response)")
        }
        executor.advance(by: .seconds(10))
      }
      XCTAssertEqual(server.requests.map { $0.headers.first("if-none-match") != nil }, [false, true, true])
    }
  }

  func testStaleWhenTheServerIsGone() async throws {
    let executor = VirtualExecutor()
    let cache = ResponseCache(configuration: .init(staleOnError: .seconds(600)), clock: executor.clock)
    try await self.run(
      .http1Only,
      interceptors: [{ _ in CacheReadInterceptor(cache) }, { _ in CacheWriteInterceptor(cache) }]
    ) { client, server in
      _ = try await client.unary(TestMethods.lookup, .with { $0.key = "k" }).get()
      executor.advance(by: .seconds(100))
      await server.stop()
      let stale = await client.unary(TestMethods.lookup, .with { $0.key = "k" })
      XCTAssertEqual(stale.message?.value, "value of k")
      XCTAssertEqual(CacheStatus(stale.headers), .stale)
      let other = await client.unary(TestMethods.lookup, .with { $0.key = "other" })
      XCTAssertEqual(other.code, .unavailable)
    }
  }
}
