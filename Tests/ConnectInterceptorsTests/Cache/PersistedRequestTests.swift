import Connect
import ConnectInterceptors
import ConnectNIO
import ConnectTesting
import Foundation
import LoopbackServer
import NIOCore
import SwiftProtobuf
import Synchronization
import XCTest

/// Hashes in place of large requests, against a server over sockets that keeps the requests that it has seen.
final class PersistedRequestTests: XCTestCase {
  private static let large = String(repeating: "x", count: 2000)

  private func run(
    _ requests: PersistedRequests = PersistedRequests(),
    networkProtocol: NetworkProtocol = .connect,
    codec: any Codec = ProtoCodec(),
    unaryGET: UnaryGET = .enabledForLimitedPayloadSizes(maxBytes: 1024),
    retries: ProtocolClientConfig.Retries = .defaults,
    outside: [InterceptorFactory] = [],
    _ body: (ProtocolClient, LoopbackServer) async throws -> Void
  ) async throws {
    let server = try await LoopbackServer.start()
    let httpClient = NIOHTTPClient(configuration: NIOHTTPClient.Configuration(version: .http2Only))
    let client = ProtocolClient(
      httpClient: httpClient,
      config: ProtocolClientConfig(
        host: server.url,
        networkProtocol: networkProtocol,
        codec: codec,
        interceptors: outside + [{ _ in PersistedRequestInterceptor(requests) }],
        timeout: .seconds(60),
        unaryGET: unaryGET,
        retries: retries
      )
    )
    do { try await body(client, server) } catch { XCTFail("\(error)") }
    await httpClient.shutdown(within: .seconds(10))
    await server.stop()
  }

  func testHashFirst() async throws {
    try await self.run { client, server in
      PersistedRequestServer().serve(TestMethods.lookup.path, on: server)
      for _ in 0..<3 {
        let value = try await client.unary(TestMethods.lookup, .with { $0.key = Self.large }).get().value
        XCTAssertEqual(value, "value of \(Self.large)")
      }
      let requests = server.requests
      XCTAssertEqual(requests.map(\.method), ["GET", "POST", "GET", "GET"])
      XCTAssertEqual(requests.map { $0.bytesReceived > 2000 }, [false, true, false, false])
      let hash = try XCTUnwrap(requests[0].headers.first("request-hash"))
      XCTAssertEqual(hash.count, 64)
      XCTAssertEqual(requests.map { $0.headers.first("request-hash") }, Array(repeating: hash, count: 4))
      XCTAssertEqual(
        requests[2].query,
        "request-hash=\(hash)&connect=v1&base64=1&encoding=proto&message=Bw"
      )
    }
  }

  /// The whole request goes as GET, too, where its length allows that.
  func testWholeRequestAsGET() async throws {
    try await self.run(unaryGET: .alwaysEnabled) { client, server in
      PersistedRequestServer().serve(TestMethods.lookup.path, on: server)
      for _ in 0..<2 { _ = try await client.unary(TestMethods.lookup, .with { $0.key = Self.large }).get() }
      XCTAssertEqual(server.requests.map(\.method), ["GET", "GET", "GET"])
      XCTAssertEqual(server.requests.map { $0.query.count > 2000 }, [false, true, false])
    }
  }

  func testErrorOfTheServerToAHashIsTheCalls() async throws {
    try await self.run { client, server in
      PersistedRequestServer(failure: "not_found").serve(TestMethods.lookup.path, on: server)
      for _ in 0..<2 {
        let code = await client.unary(TestMethods.lookup, .with { $0.key = Self.large }).code
        XCTAssertEqual(code, .notFound)
      }
      XCTAssertEqual(server.requests.map(\.method), ["GET", "POST", "GET"])
    }
  }

  func testServerWithoutTheExtension() async throws {
    for codec in [ProtoCodec(), JSONCodec()] as [any Codec] {
      let executor = VirtualExecutor()
      let requests = PersistedRequests(pause: .seconds(60), clock: executor.clock)
      try await self.run(requests, codec: codec) { client, server in
        for _ in 0..<3 {
          let value = try await client.unary(TestMethods.lookup, .with { $0.key = Self.large }).get().value
          XCTAssertEqual(value, "value of \(Self.large)")
        }
        XCTAssertEqual(server.requests.map(\.method), ["GET", "POST", "POST", "POST"], codec.name)
        executor.advance(by: .seconds(60))
        _ = try await client.unary(TestMethods.lookup, .with { $0.key = Self.large }).get()
        XCTAssertEqual(server.requests.map(\.method).suffix(2), ["GET", "POST"], codec.name)
      }
    }
  }

  /// Where no second attempt is possible, the call fails: an answer to what was never asked must not get through.
  func testServerWithoutTheExtensionAndNoRetryLeft() async throws {
    for codec in [ProtoCodec(), JSONCodec()] as [any Codec] {
      try await self.run(codec: codec, retries: .init(maximumRetries: 0)) { client, server in
        let response = await client.unary(TestMethods.lookup, .with { $0.key = Self.large })
        XCTAssertNil(response.message, codec.name)
        XCTAssertEqual(server.requests.count, 1, codec.name)
      }
    }
  }

  func testServerThatCannotBeReachedSaysNothingOfTheExtension() async throws {
    try await self.run { client, server in
      let isOpen = Mutex(false)
      let persisted = PersistedRequestServer()
      server.onRaw(TestMethods.lookup.path) { request, responder in
        guard isOpen.withLock({ $0 }) else { return try await responder.respond(status: 503, text: "later") }
        try await persisted.answer(request, responder)
      }
      let code = await client.unary(TestMethods.lookup, .with { $0.key = Self.large }).code
      XCTAssertEqual(code, .unavailable)
      isOpen.withLock { $0 = true }
      _ = try await client.unary(TestMethods.lookup, .with { $0.key = Self.large }).get()
      XCTAssertEqual(server.requests.map(\.method), ["GET", "GET", "POST"])
    }
  }

  func testOtherRequestsAreNotTouched() async throws {
    func hashes(
      _ networkProtocol: NetworkProtocol = .connect,
      _ unaryGET: UnaryGET = .alwaysEnabled,
      _ call: @Sendable (ProtocolClient) async -> Code
    ) async throws -> [String] {
      let hashes = Mutex<[String]>([])
      try await self.run(networkProtocol: networkProtocol, unaryGET: unaryGET) { client, server in
        let code = await call(client)
        XCTAssertEqual(code, .ok)
        hashes.withLock { $0 = server.requests.flatMap { $0.headers["request-hash"] } }
      }
      return hashes.withLock { $0 }
    }
    let lookup: @Sendable (ProtocolClient) async -> Code = {
      await $0.unary(TestMethods.lookup, .with { $0.key = Self.large }).code
    }
    let small = try await hashes { await $0.unary(TestMethods.lookup, .with { $0.key = "small" }).code }
    XCTAssertEqual(small, [])
    let withSideEffects = try await hashes {
      await $0.unary(TestMethods.echo, .with { $0.payload.text = Self.large }).code
    }
    XCTAssertEqual(withSideEffects, [])
    let disabled = try await hashes(.connect, .disabled, lookup)
    XCTAssertEqual(disabled, [])
    let grpcWeb = try await hashes(.grpcWeb, .alwaysEnabled, lookup)
    XCTAssertEqual(grpcWeb, [])
  }

  /// Inside of a cache: that sees the whole request, and asks whether the response has changed.
  func testInsideOfACache() async throws {
    let executor = VirtualExecutor()
    let cache = ResponseCache(clock: executor.clock)
    try await self.run(
      unaryGET: .alwaysEnabled,
      outside: [{ _ in CacheReadInterceptor(cache) }, { _ in CacheWriteInterceptor(cache) }]
    ) { client, server in
      PersistedRequestServer(etag: "\"1\"").serve(TestMethods.lookup.path, on: server)
      for _ in 0..<3 {
        for _ in 0..<2 {
          let value = try await client.unary(TestMethods.lookup, .with { $0.key = Self.large }).get().value
          XCTAssertEqual(value, "value of \(Self.large)")
        }
        executor.advance(by: .seconds(60))
      }
      XCTAssertEqual(server.requests.map { $0.query.count > 2000 }, [false, true, false, false])
      XCTAssertEqual(
        server.requests.map { $0.headers.first("if-none-match") != nil },
        [false, false, true, true]
      )
    }
  }

  /// The whole request comes past the log once more, and with it the token.
  func testTokenIsNotLogged() async throws {
    let recorder = CallLogRecorder()
    let log = CallLog(logger: recorder.makeLogger(), options: .init(logsHeaders: true))
    let credentials = Credentials(
      for: ["127.0.0.1"],
      token: AccessToken("s3cret"),
      configuration: .init(header: "x-service-token", scheme: nil, allowsCleartext: true)
    ) { _ in AccessToken("s3cret") }
    try await self.run(
      outside: [{ LoggingInterceptor(log, config: $0) }, { _ in CredentialsInterceptor(credentials) }]
    ) { client, server in
      PersistedRequestServer().serve(TestMethods.lookup.path, on: server)
      _ = try await client.unary(TestMethods.lookup, .with { $0.key = Self.large }).get()
      XCTAssertEqual(server.requests.map { $0.headers.first("x-service-token") }, ["s3cret", "s3cret"])
    }
    XCTAssertEqual(
      recorder.lines.compactMap { $0.metadata["rpc.request.metadata.x-service-token"] },
      ["<redacted>"]
    )
    XCTAssertFalse("\(recorder.lines)".contains("s3cret"))
  }

  /// The question of the cache goes with the hash, and once more with the whole request: the cache hears the answer.
  func testServerThatHasForgottenTheRequestOfAStaleResponse() async throws {
    let executor = VirtualExecutor()
    let cache = ResponseCache(clock: executor.clock)
    try await self.run(
      unaryGET: .alwaysEnabled,
      outside: [{ _ in CacheReadInterceptor(cache) }, { _ in CacheWriteInterceptor(cache) }]
    ) { client, server in
      PersistedRequestServer(etag: "\"1\"").serve(TestMethods.lookup.path, on: server)
      _ = try await client.unary(TestMethods.lookup, .with { $0.key = Self.large }).get()
      executor.advance(by: .seconds(60))
      PersistedRequestServer(etag: "\"1\"").serve(TestMethods.lookup.path, on: server)
      let response = await client.unary(TestMethods.lookup, .with { $0.key = Self.large })
      XCTAssertEqual(response.message?.value, "value of \(Self.large)")
      XCTAssertEqual(CacheStatus(response.headers), .revalidated)
      let hit = await client.unary(TestMethods.lookup, .with { $0.key = Self.large })
      XCTAssertEqual(CacheStatus(hit.headers), .hit)
      XCTAssertEqual(server.requests.count, 4)
    }
  }
}

/// A server of `Lookup` that keeps the requests that it has seen, by their hashes.
final class PersistedRequestServer: Sendable {
  private let known = Mutex<[String: ByteBuffer]>([:])
  private let failure: String?
  private let etag: String?

  /// - Parameters:
  ///   - failure: The name of the code that all calls fail with.
  ///   - etag: Of all responses.
  init(failure: String? = nil, etag: String? = nil) {
    self.failure = failure
    self.etag = etag
  }

  func serve(_ path: String, on server: LoopbackServer) {
    server.onRaw(path) { request, responder in try await self.answer(request, responder) }
  }

  func answer(_ request: RawRequest, _ responder: RawResponder) async throws {
    guard let hash = request.record.headers.first("request-hash"),
      let sent = try await self.message(of: request)
    else { return try await responder.respond(status: 400, text: "no request") }
    let message =
      sent == ByteBuffer(bytes: [7])
      ? self.known.withLock { $0[hash] }
      : self.known.withLock { known in
        known[hash] = sent
        return sent
      }
    guard let message else {
      return try await responder.respond(
        status: 400,
        headers: [
          "content-type": "application/json", "request-hash": "unknown", "cache-control": "no-store",
        ],
        text: #"{"code": "failed_precondition", "message": "unknown request-hash"}"#
      )
    }
    if let failure = self.failure {
      return try await responder.respond(
        status: 404,
        headers: ["content-type": "application/json", "request-hash": hash],
        text: #"{"code": "\#(failure)"}"#
      )
    }
    var headers: HeaderFields = ["content-type": "application/proto", "request-hash": hash]
    if let etag = self.etag {
      headers.add("etag", etag)
      if request.record.headers.first("if-none-match") == etag {
        return try await responder.respond(status: 304, headers: headers)
      }
    }
    let key = try LookupRequest(serializedBytes: Array(message.readableBytesView)).key
    let bytes: [UInt8] = try LookupResponse.with { $0.value = "value of \(key)" }.serializedBytes()
    try await responder.respond(headers: headers, body: ByteBuffer(bytes: bytes))
  }

  private func message(of request: RawRequest) async throws -> ByteBuffer? {
    guard request.record.method == "GET" else { return try await request.body() }
    let parameter = request.record.query.split(separator: "&").first { $0.hasPrefix("message=") }
    guard let text = parameter?.dropFirst("message=".count) else { return nil }
    var base64 = text.replacing("-", with: "+").replacing("_", with: "/")
    while !base64.count.isMultiple(of: 4) { base64 += "=" }
    return Data(base64Encoded: String(base64)).map { ByteBuffer(bytes: $0) }
  }
}
