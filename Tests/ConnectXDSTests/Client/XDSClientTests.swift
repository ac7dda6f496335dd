internal import Connect
internal import ConnectTesting
internal import Foundation
internal import Logging
internal import SwiftProtobuf
internal import Synchronization
internal import XCTest

@testable internal import ConnectXDS

/// The client over calls of a `ProtocolClient`, to a control plane in memory.
final class XDSClientTests: XCTestCase {
  private typealias Request = Envoy_Service_Discovery_V3_DiscoveryRequest
  private typealias Response = Envoy_Service_Discovery_V3_DiscoveryResponse

  private static let method =
    Envoy_Service_Discovery_V3_AggregatedDiscoveryServiceClient.Methods.streamAggregatedResources

  private let executor = VirtualExecutor()

  private func makeClient(
    _ transport: InMemoryTransport,
    decode: @escaping DiscoveryClient.Decode = DiscoveryFixture.decode
  ) -> XDSClient {
    let logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
    return XDSClient(
      bootstrap: XDSBootstrap(servers: [DiscoveryFixture.server], node: .init(id: "me")),
      on: self.executor,
      seed: 1,
      logger: logger,
      transport: { _ in transport },
      streams: CallTransport(transport: { _ in transport }, logger: logger),
      wallClock: { .milliseconds(1_500_000_000_500) },
      decode: decode
    )
  }

  private func watch(_ client: XDSClient, _ name: String) -> (Heard, any ResourceWatch) {
    let heard = Heard()
    let watch = self.executor.sync { client.watch(.listener, name) { heard.hear($0) } }
    self.executor.runUntilIdle()
    return (heard, watch)
  }

  private static func response(_ request: Request, _ resources: [String], version: String) -> Response {
    .with { response in
      response.typeURL = request.typeURL
      response.versionInfo = version
      response.nonce = "n\(version)"
      response.resources = resources.map { text in
        .with {
          $0.typeURL = request.typeURL
          $0.value = Data(text.utf8)
        }
      }
    }
  }

  func testRealCalls() throws {
    let transport = InMemoryTransport(executor: self.executor)
    let requests = Mutex<[Request]>([])
    let hasEnded = Mutex(false)
    transport.onBidirectionalStream(Self.method) { messages, responses, _ in
      defer { hasEnded.withLock { $0 = true } }
      var version = 0
      for try await request in messages {
        requests.withLock { $0.append(request) }
        guard request.responseNonce.isEmpty || request.resourceNames.count > 1 else { continue }
        version += 1
        guard version < 4 else { continue }
        let resources = request.resourceNames.map { "\($0)=\(version)" }
        try await responses.send(Self.response(request, resources, version: "\(version)"))
      }
    }
    let client = self.makeClient(transport)
    let (a, first) = self.watch(client, "a")
    XCTAssertEqual(a.take(), ["+1"])
    let (b, second) = self.watch(client, "b")
    XCTAssertEqual(b.take(), ["+2", "+3"])
    XCTAssertEqual(a.take(), ["+2", "+3"])
    let seen = requests.withLock { $0 }
    XCTAssertEqual(seen.map(\.resourceNames), [["a"], ["a"], ["a", "b"], ["a", "b"], ["a", "b"]])
    XCTAssertEqual(seen.map(\.versionInfo), ["", "1", "1", "2", "3"])
    XCTAssertEqual(seen.map(\.responseNonce), ["", "n1", "n1", "n2", "n3"])
    XCTAssertEqual(seen.map(\.hasNode), [true, false, false, false, false])

    XCTAssertFalse(hasEnded.withLock { $0 })
    self.executor.sync {
      first.cancel()
      second.cancel()
    }
    self.executor.runUntilIdle()
    XCTAssertTrue(hasEnded.withLock { $0 }, "the stream ends with the last interest")
  }

  func testConnectionsThatAreRefusedAndLost() throws {
    let transport = InMemoryTransport(executor: self.executor)
    transport.onBidirectionalStream(Self.method) { messages, responses, _ in
      for try await request in messages where request.responseNonce.isEmpty {
        try await responses.send(Self.response(request, ["a=1"], version: "1"))
      }
    }
    transport.refuseConnections()
    let client = self.makeClient(transport)
    let (a, _) = self.watch(client, "a")
    let heard = a.take()
    XCTAssertEqual(heard.count, 1)
    XCTAssertTrue(
      heard.first?.hasPrefix("-unavailable the control plane one cannot be used") ?? false,
      "\(heard)"
    )
    transport.acceptConnections()
    self.executor.advance(by: .seconds(30))
    XCTAssertEqual(a.take(), ["+1"])
    transport.disconnect()
    self.executor.advance(by: .seconds(30))
    XCTAssertEqual(a.take(), [])
    let (b, _) = self.watch(client, "a")
    XCTAssertEqual(b.take(), ["+1"])
  }

  func testASilentServer() throws {
    let transport = InMemoryTransport(executor: self.executor)
    transport.onBidirectionalStream(Self.method) { messages, _, _ in for try await _ in messages {} }
    let client = self.makeClient(transport)
    let (a, _) = self.watch(client, "a")
    self.executor.advance(by: .seconds(14))
    XCTAssertEqual(a.take(), [])
    self.executor.advance(by: .seconds(1))
    XCTAssertTrue(a.take().first?.hasPrefix("-not_found") ?? false)
  }

  func testAServerWithoutTheService() {
    let client = self.makeClient(InMemoryTransport(executor: self.executor))
    let (a, _) = self.watch(client, "a")
    XCTAssertTrue(a.take().first?.contains("unimplemented") ?? false)
  }

  /// A response has a largest size, beyond which the stream ends with an error that says so.
  func testLargeResponses() throws {
    let size = Mutex(CallTransport.maximumResponseSize - 1000)
    let transport = InMemoryTransport(executor: self.executor)
    transport.onBidirectionalStream(Self.method) { messages, responses, _ in
      for try await request in messages where request.responseNonce.isEmpty {
        let text = String(repeating: "x", count: size.withLock { $0 })
        try await responses.send(Self.response(request, ["\(text)=1", "a=1"], version: "1"))
      }
    }
    let client = self.makeClient(transport)
    let (a, watch) = self.watch(client, "a")
    XCTAssertEqual(a.take(), ["+1"])
    self.executor.sync { watch.cancel() }
    self.executor.runUntilIdle()

    size.withLock { $0 = CallTransport.maximumResponseSize + 1 }
    let (b, _) = self.watch(client, "a")
    let heard = b.take().first ?? ""
    XCTAssertTrue(heard.hasPrefix("-unavailable"), heard)
    XCTAssertTrue(heard.contains("resource_exhausted"), heard)
    XCTAssertTrue(heard.contains("16777216"), heard)
  }

  /// Nothing that a server sends stops the client.
  func testGarbage() throws {
    let transport = InMemoryTransport(executor: self.executor)
    let round = Mutex(0)
    transport.onRaw("/\(Self.method.path.dropFirst())") { exchange in
      round.withLock { $0 += 1 }
      throw ConnectError(code: .dataLoss, message: "garbage")
    }
    let client = self.makeClient(transport)
    let (a, _) = self.watch(client, "a")
    self.executor.advance(by: .seconds(10))
    XCTAssertGreaterThan(round.withLock { $0 }, 1)
    XCTAssertTrue(a.take().first?.hasPrefix("-unavailable") ?? false)
  }

  // MARK: - Snapshots

  func testSnapshot() async throws {
    let transport = InMemoryTransport(executor: self.executor)
    var listener = Envoy_Config_Listener_V3_Listener()
    listener.name = "a"
    var manager = Envoy_Extensions_Filters_Network_HttpConnectionManager_V3_HttpConnectionManager()
    manager.rds.routeConfigName = "routes"
    listener.apiListener.apiListener = try Google_Protobuf_Any(message: manager)
    let good = try Google_Protobuf_Any(message: listener)
    listener.name = "strange"
    listener.apiListener.apiListener = Google_Protobuf_Any.with {
      $0.typeURL = "type.googleapis.com/some.Unknown"
      $0.value = Data([1])
    }
    let strange = try Google_Protobuf_Any(message: listener)
    listener.name = "bad"
    let bad = try Google_Protobuf_Any(message: listener)
    transport.onBidirectionalStream(Self.method) { [good] messages, responses, _ in
      for try await request in messages where request.responseNonce.isEmpty {
        var response = Self.response(request, [], version: "7")
        response.resources = [good, strange, bad]
        try await responses.send(response)
      }
    }
    let client = self.makeClient(transport) { message, _ in
      let name = (try? Envoy_Config_Listener_V3_Listener(serializedBytes: message.value))?.name
      let value = ListenerResource(routes: .named(""), maximumStreamDuration: nil, filters: [])
      return .init(
        name: name,
        resource: name == "bad"
          ? .failure(ResourceProblem(problems: ["broken"])) : .success(.listener(value)),
        message: message
      )
    }
    self.executor.sync {
      for name in ["strange", "a", "bad", "none"] { _ = client.watch(.listener, name) { _ in } }
    }
    self.executor.runUntilIdle()

    let snapshot = await client.snapshot()
    XCTAssertEqual(snapshot.resources.map(\.name), ["a", "bad", "none", "strange"])
    XCTAssertEqual(snapshot.resources.map(\.status), [.acknowledged, .refused, .requested, .acknowledged])
    XCTAssertEqual(snapshot.resources.map(\.version), ["7", nil, nil, "7"])
    XCTAssertEqual(
      snapshot.resources.map(\.type),
      .init(repeating: "envoy.config.listener.v3.Listener", count: 4)
    )
    let time = Duration.milliseconds(1_500_000_000_500)
    XCTAssertEqual(snapshot.resources[0].time, time)
    XCTAssertEqual(snapshot.resources[1].refusal, .init(version: "7", details: "broken", time: time))

    let json = try JSONSerialization.jsonObject(with: Data(snapshot.json.utf8)) as? [String: Any]
    let config = try XCTUnwrap((json?["config"] as? [[String: Any]])?.first)
    XCTAssertEqual((config["node"] as? [String: Any])?["id"] as? String, "me")
    let entries = try XCTUnwrap(config["genericXdsConfigs"] as? [[String: Any]])
    XCTAssertEqual(entries.map { $0["clientStatus"] as? String }, ["ACKED", "NACKED", "REQUESTED", "ACKED"])
    XCTAssertEqual(entries[0]["typeUrl"] as? String, ResourceType.listener.url)
    XCTAssertEqual(entries[0]["lastUpdated"] as? String, "2017-07-14T02:40:00.500Z")
    let message = try XCTUnwrap(entries[0]["xdsConfig"] as? [String: Any])
    let inner = (message["apiListener"] as? [String: Any])?["apiListener"] as? [String: Any]
    XCTAssertEqual((inner?["rds"] as? [String: Any])?["routeConfigName"] as? String, "routes")
    XCTAssertEqual((entries[1]["errorState"] as? [String: Any])?["details"] as? String, "broken")
    XCTAssertEqual(
      (entries[3]["xdsConfig"] as? [String: Any])?["@type"] as? String,
      "type.googleapis.com/google.protobuf.BytesValue"
    )
  }
}
