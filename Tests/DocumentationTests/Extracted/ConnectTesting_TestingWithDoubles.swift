// Extracted from Sources/ConnectTesting/ConnectTesting.docc/TestingWithDoubles.md by `make generate`.

import Connect
import ConnectChannels
import ConnectTesting
import XCTest

/// What is tested: asks a service, and has something to say when the service is away.
struct Greeter {
  let service: any Connectrpc_Eliza_V1_ElizaServiceClientInterface

  func greeting(for name: String) async throws -> String {
    do {
      let response = try await self.service.say(.with { $0.sentence = "Hello \(name)" })
      return response.sentence
    } catch let error as ConnectError where error.code == .unavailable {
      return "Hello, whoever you are"
    }
  }
}

final class GreeterTests: XCTestCase {
  func testAsksTheService() async throws {
    let mock = Connectrpc_Eliza_V1_ElizaServiceClientMock()
    mock.mockSay.answer(.message(.with { $0.sentence = "Hello Ada" }))

    let greeting = try await Greeter(service: mock).greeting(for: "Ada")

    XCTAssertEqual(greeting, "Hello Ada")
    let call = try await mock.mockSay.nextCall()
    try requireEqual(call.request, .with { $0.sentence = "Hello Ada" })
  }

  func testHasAnAnswerWhenTheServiceIsAway() async throws {
    let mock = Connectrpc_Eliza_V1_ElizaServiceClientMock()
    mock.mockSay.answer(.failure(ConnectError(code: .unavailable)))
    let greeting = try await Greeter(service: mock).greeting(for: "Ada")
    XCTAssertEqual(greeting, "Hello, whoever you are")
  }
}

final class MockScriptTests: XCTestCase {
  func testAnswersInTurn() async throws {
    let mock = Connectrpc_Eliza_V1_ElizaServiceClientMock()
    mock.mockSay.answer(
      .failure(ConnectError(code: .unavailable), after: .milliseconds(5)),
      .message(.with { $0.sentence = "second time" })
    )

    let first = await mock.say(request: .init(), options: CallOptions())
    try first.requireError(.unavailable)
    let second = await mock.say(request: .init(), options: CallOptions())
    XCTAssertEqual(try second.requireMessage().sentence, "second time")
  }

  func testAnswersAStream() async throws {
    let mock = Connectrpc_Eliza_V1_ElizaServiceClientMock()
    mock.mockConverse.answer { requests, responses, context in
      for try await request in requests {
        try await responses.send(.with { $0.sentence = "re: \(request.sentence)" })
      }
    }

    let stream = mock.converse(options: CallOptions())
    try await stream.send(.with { $0.sentence = "Hello" })
    stream.finish()

    let conversation = try await stream.results.collected()
    XCTAssertEqual(try conversation.requireMessages().map(\.sentence), ["re: Hello"])
  }
}

final class InMemoryServerTests: XCTestCase {
  func testAStreamInSmallPieces() async throws {
    let introduce = Connectrpc_Eliza_V1_ElizaServiceClient.Methods.introduce
    let transport = InMemoryTransport()
    transport.onServerStream(introduce) { request, responses, context in
      context.responseHeaders["x-served-by"] = ["memory"]
      for sentence in ["Hi \(request.name).", "I am Eliza."] {
        try await responses.send(.with { $0.sentence = sentence })
      }
    }
    transport.inject(.splitEvery(1), at: introduce.path)

    let client = ProtocolClient(
      httpClient: transport,
      config: ProtocolClientConfig(host: "http://memory", networkProtocol: .grpc)
    )
    let stream = try await client.serverStream(introduce, .with { $0.name = "Ada" }).results.collected()
    XCTAssertEqual(try stream.requireMessages().map(\.sentence), ["Hi Ada.", "I am Eliza."])
    XCTAssertEqual(stream.headers["x-served-by"], ["memory"])
  }
}

final class InMemoryFleetTests: XCTestCase {
  func testServersGoAndComeBack() async throws {
    let say = Connectrpc_Eliza_V1_ElizaServiceClient.Methods.say
    let servers = ["10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"].compactMap { EndpointAddress($0) }
    let executor = VirtualExecutor()
    let transport = InMemoryTransport(
      executor: executor,
      channel: ChannelConfiguration(
        resolver: StaticResolver(servers.map { Endpoint($0) }),  // or a PushResolver, for servers that change
        balancing: .roundRobin
      )
    )
    transport.onUnary(say) { request, context in
      .with { $0.sentence = context.serverAddress?.description ?? "" }
    }
    let client = ProtocolClient(httpClient: transport, config: ProtocolClientConfig(host: "http://fleet"))
    func whoAnswers() async throws -> Set<String> {
      var names: Set<String> = []
      for _ in 0..<10 { names.insert(try await client.unary(say, .init()).get().sentence) }
      return names
    }

    transport.refuseConnections(at: servers[1])
    transport.goAway(at: servers[1])  // in order; disconnect(at:) is a crash
    let two = try await whoAnswers()
    XCTAssertEqual(two, ["10.0.0.1:80", "10.0.0.3:80"])

    transport.acceptConnections(at: servers[1])
    executor.advance(by: .seconds(5))  // longer than the backoff
    let three = try await whoAnswers()
    XCTAssertEqual(three.count, 3)
  }
}

final class VirtualTimeTests: XCTestCase {
  func testADeadlineOfAnHour() async throws {
    let executor = VirtualExecutor()
    let mock = Connectrpc_Eliza_V1_ElizaServiceClientMock(
      MockService(
        config: ProtocolClientConfig(host: "http://memory", timeout: .seconds(3600)),
        executor: executor
      )
    )
    mock.mockSay.answer(.message(.init(), after: .seconds(7200)))

    let response = try await executor.lettingTimePass {
      await mock.say(request: .init(), options: CallOptions())
    }

    try response.requireError(.deadlineExceeded)
    XCTAssertEqual(executor.now, .seconds(3600))
  }
}
