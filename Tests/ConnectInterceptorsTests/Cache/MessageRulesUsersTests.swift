import Connect
import ConnectTesting
import Logging
import LoopbackServer
import NIOCore
import SwiftProtobuf
import XCTest

@testable import ConnectInterceptors

/// The codecs, storages and readers that users' rules about responses meet.
final class MessageRulesUsersTests: XCTestCase {
  // MARK: Codecs, storages, methods

  func testJSON() async throws {
    let cache = CacheScene.ruled(isStale: { response, _ in response.message?.value == "k 1" }).cache
    let scene = CacheScene()
    let client = ProtocolClient(
      httpClient: scene.transport,
      config: ProtocolClientConfig(
        host: "https://api.test",
        codec: JSONCodec(),
        interceptors: [{ _ in CacheReadInterceptor(cache) }, { _ in CacheWriteInterceptor(cache) }]
      )
    )
    var values: [String] = []
    for _ in 0..<3 {
      values.append(try await client.unary(TestMethods.lookup, .with { $0.key = "k" }).get().value)
    }
    XCTAssertEqual(values, ["k 1", "k 2", "k 2"])
  }

  func testContentTypes() {
    let configuration = ResponseCache.Configuration.defaults
    let names = [
      "application/proto": "proto", "application/json; charset=utf-8": "json", "application/grpc": "proto",
      "application/grpc+json": "json", "application/grpc-web": "proto", "application/grpc-web+json": "json",
      "application/grpc-web-text": "proto", "application/xml": nil, "application/grpc+xml": nil, "": nil,
      "application/": nil, "+": nil, ";": nil,
    ]
    for (type, name) in names { XCTAssertEqual(configuration.codec(of: type)?.name, name, type) }
  }

  /// Turns all bits around.
  private struct Flipped: Codec {
    var name = "flipped"

    private func flip(_ bytes: ByteBuffer) -> ByteBuffer {
      ByteBuffer(bytes: bytes.readableBytesView.map { ~$0 })
    }

    func encode<Message: Sendable>(
      _ message: Message,
      as coding: MessageCoding<Message>,
      deterministic: Bool
    ) throws -> ByteBuffer {
      self.flip(try ProtoCodec().encode(message, as: coding, deterministic: deterministic))
    }

    func decode<Message: Sendable>(_ bytes: ByteBuffer, as coding: MessageCoding<Message>) throws -> Message {
      try ProtoCodec().decode(self.flip(bytes), as: coding)
    }
  }

  func testACodecOfTheUsersOwn() async throws {
    for (name, isListed) in [("flipped", true), ("flipped", false), ("proto", true), ("proto", false)] {
      let codec = Flipped(name: name)
      var configuration = ResponseCache.Configuration()
      if isListed { configuration.codecs.insert(codec, at: 0) }
      configuration.setRules(
        for: TestMethods.lookup,
        shouldStore: { response, _ in response.message?.value == "v" }
      )
      let executor = VirtualExecutor()
      let transport = InMemoryTransport(executor: executor)
      let count = Observed(0)
      transport.onRaw(TestMethods.lookup.path) { exchange in
        count.update { $0 += 1 }
        let body = try codec.encode(
          LookupResponse.with { $0.value = "v" },
          as: TestMethods.lookup.output,
          deterministic: true
        )
        try await exchange.respond(headers: ["content-type": ["application/\(name)"]], body: body)
      }
      let cache = ResponseCache(configuration: configuration, clock: executor.clock)
      let recorder = CallLogRecorder()
      let client = ProtocolClient(
        httpClient: transport,
        config: ProtocolClientConfig(
          host: "https://api.test",
          codec: codec,
          interceptors: [{ _ in CacheReadInterceptor(cache) }, { _ in CacheWriteInterceptor(cache) }],
          logger: recorder.makeLogger(level: .warning)
        )
      )
      for _ in 0..<2 {
        let value = try await client.unary(TestMethods.lookup, .with { $0.key = "k" }).get().value
        XCTAssertEqual(value, "v")
      }
      XCTAssertEqual(count.value, isListed ? 1 : 2, name)
      XCTAssertEqual(
        recorder.texts,
        isListed
          ? []
          : [
            "the cache has rules for typed responses, but the client's codec, Flipped with the name \(name), is not the "
              + "one of this name in ResponseCache.Configuration.codecs: responses may not decode, and are not stored then"
          ]
      )
    }
  }

  func testAStorageThatAnswersLater() async throws {
    let storage = SlowStorage()
    let scene = CacheScene.ruled(storage: storage) { response, _ in response.message?.value == "k 1" }
    var values: [String] = []
    for count in 1...2 {
      values.append(try await scene.value())
      await storage.waitUntilStored(count)
    }
    values.append(try await scene.value())
    XCTAssertEqual(values, ["k 1", "k 2", "k 2"])
  }

  func testOtherMethods() async throws {
    var configuration = ResponseCache.Configuration()
    let other = MethodSpec<LookupRequest, LookupResponse>(
      path: "/other.Service/Lookup",
      streamType: .unary,
      idempotencyLevel: .noSideEffects
    )
    configuration.setRules(
      for: other,
      isStale: { _, _ in
        XCTFail("another method")
        return true
      },
      shouldStore: { _, _ in false }
    )
    let scene = CacheScene(configuration)
    let values = [try await scene.value(), try await scene.value()]
    XCTAssertEqual(values, ["k 1", "k 1"])
    // The last rules of a method count.
    configuration.setRules(for: TestMethods.lookup, shouldStore: { _, _ in false })
    configuration.setRules(for: TestMethods.lookup)
    let again = CacheScene(configuration)
    let stored = [try await again.value(), try await again.value()]
    XCTAssertEqual(stored, ["k 1", "k 1"])
  }

  /// A reader of the user's own asks the cache.
  func testOwnReader() async throws {
    struct Reader: Interceptor {
      let cache: ResponseCache
      func unaryFunction() -> UnaryFunction {
        UnaryFunction(requestFunction: { request, proceed in
          self.cache.entry(for: request) { entry in
            guard let entry, self.cache.isFresh(entry, for: request) else {
              return proceed(.success(request))
            }
            proceed.answer(entry.response)
          }
        })
        .placed(.innermost)
      }
    }
    let cache = CacheScene.ruled { response, _ in response.message?.value == "k 1" }.cache
    let scene = CacheScene()
    let client = ProtocolClient(
      httpClient: scene.transport,
      config: ProtocolClientConfig(
        host: "https://api.test",
        interceptors: [{ _ in Reader(cache: cache) }, { _ in CacheWriteInterceptor(cache) }]
      )
    )
    var values: [String] = []
    for headers in [[:], [:], [:], ["cache-control": ["no-cache"]], ["cache-control": ["max-age=60"]]]
      as [Headers]
    {
      let response = await client.unary(
        TestMethods.lookup,
        .with { $0.key = "k" },
        options: CallOptions(headers: headers)
      )
      values.append(try response.get().value)
    }
    XCTAssertEqual(values, ["k 1", "k 2", "k 2", "k 3", "k 3"])
  }

  // MARK: Over sockets

  /// A thousand calls at the same time, with rules that change their mind: each gets the response of its own request.
  func testOverSockets() async throws {
    let round = Observed(0)
    var configuration = ResponseCache.Configuration(timeToLive: .seconds(1000))
    configuration.setRules(
      for: TestMethods.lookup,
      isStale: { _, _ in
        round.update {
          $0 += 1; return $0 % 7 == 0
        }
      },
      shouldStore: { response, _ in response.message?.value.hasSuffix("3") == false }
    )
    let cache = ResponseCache(configuration: configuration)
    try await SocketTest.run([{ _ in CacheReadInterceptor(cache) }, { _ in CacheWriteInterceptor(cache) }]) {
      server,
      client,
      setting in
      let wrong = await withTaskGroup(of: String?.self) { group in
        for index in 0..<1000 {
          group.addTask {
            let key = "key \(index % 5)"
            let response = await client.unary(TestMethods.lookup, .with { $0.key = key })
            return response.message?.value == "value of \(key)" ? nil : "\(key): \(response)"
          }
        }
        return await group.compactMap(\.self).reduce(into: []) { $0.append($1) }
      }
      XCTAssertEqual(wrong, [], "\(setting)")
      // What is not stored went to the network for each of its calls, and much of the rest did not.
      XCTAssertGreaterThanOrEqual(server.requests.count, 200, "\(setting)")
      XCTAssertLessThan(server.requests.count, 1000, "\(setting)")
      cache.removeAll()
    }
  }
}
