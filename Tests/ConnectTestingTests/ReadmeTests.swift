import Connect
import ConnectChannels
import ConnectTesting
import LoopbackServer
import SwiftProtobuf
import XCTest

// The examples of the README, so that they compile and do what is said.

/// What is tested: asks a service, and has something to say when the service is away.
struct Greeter {
  let service: any Connect_Test_V1_TestServiceClientInterface

  func greeting(for name: String) async throws -> String {
    do {
      let response = try await self.service.echo(.with { $0.payload.text = "Hello \(name)" })
      return response.payload.text
    } catch let error as ConnectError where error.code == .unavailable {
      return "Hello, whoever you are"
    }
  }
}

final class GreeterTests: XCTestCase {
  func testAsksTheService() async throws {
    let mock = Connect_Test_V1_TestServiceClientMock()
    mock.mockEcho.answer(.message(.with { $0.payload.text = "Hello Ada" }))

    let greeting = try await Greeter(service: mock).greeting(for: "Ada")

    XCTAssertEqual(greeting, "Hello Ada")
    let call = try await mock.mockEcho.nextCall()
    try requireEqual(call.request, .with { $0.payload.text = "Hello Ada" })
  }

  func testHasAnAnswerWhenTheServiceIsAway() async throws {
    let mock = Connect_Test_V1_TestServiceClientMock()
    mock.mockEcho.answer(.failure(ConnectError(code: .unavailable)))
    let greeting = try await Greeter(service: mock).greeting(for: "Ada")
    XCTAssertEqual(greeting, "Hello, whoever you are")
  }
}

final class ReadmeTests: XCTestCase {
  func testHandlersByPath() async throws {
    let transport = InMemoryTransport()
    transport.onServerStream(TestMethods.count) { request, responses, context in
      context.responseHeaders["x-served-by"] = ["memory"]
      for number in request.from..<(request.from + 3) {
        try await responses.send(.with { $0.number = number })
      }
    }
    transport.inject(.splitEvery(1), at: TestMethods.count.path)

    let client = ProtocolClient(
      httpClient: transport,
      config: ProtocolClientConfig(host: "http://memory", networkProtocol: .grpc)
    )
    let stream = try await client.serverStream(TestMethods.count, .with { $0.from = 7 }).results.collected()
    XCTAssertEqual(try stream.requireMessages().map(\.number), [7, 8, 9])
    XCTAssertEqual(stream.headers["x-served-by"], ["memory"])
  }

  func testAFleet() async throws {
    let servers = ["10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"].compactMap { EndpointAddress($0) }
    let executor = VirtualExecutor()
    let transport = InMemoryTransport(
      executor: executor,
      channel: ChannelConfiguration(
        resolver: StaticResolver(servers.map { Endpoint($0) }),  // or a PushResolver, for servers that change
        balancing: .roundRobin
      )
    )
    transport.onUnary(TestMethods.echo) { request, context in
      .with { $0.payload.text = context.serverAddress?.description ?? "" }
    }
    let client = ProtocolClient(httpClient: transport, config: ProtocolClientConfig(host: "http://fleet"))
    func whoAnswers(_ count: Int) async throws -> Set<String> {
      var names: Set<String> = []
      for _ in 0..<count {
        names.insert(try await client.unary(TestMethods.echo, EchoRequest()).get().payload.text)
      }
      return names
    }

    transport.refuseConnections(at: servers[1])
    transport.goAway(at: servers[1])  // in order; disconnect(at:) is a crash
    let two = try await whoAnswers(10)
    XCTAssertEqual(two, ["10.0.0.1:80", "10.0.0.3:80"])

    transport.acceptConnections(at: servers[1])
    executor.advance(by: .seconds(5))  // longer than the backoff
    let three = try await whoAnswers(10)
    XCTAssertEqual(three.count, 3)
  }

  func testScriptsOfMocks() async throws {
    let mock = Connect_Test_V1_TestServiceClientMock()
    mock.mockEcho.answer(
      .failure(ConnectError(code: .unavailable), after: .milliseconds(5)),
      .message(.with { $0.payload.text = "second time" })
    )
    mock.mockConverse.answer { requests, responses, context in
      for try await request in requests {
        try await responses.send(.with { $0.payload.text = "re: \(request.payload.text)" })
      }
    }

    let first = await mock.echo(request: EchoRequest(), options: CallOptions())
    try first.requireError(.unavailable)
    let second = await mock.echo(request: EchoRequest(), options: CallOptions())
    XCTAssertEqual(try second.requireMessage().payload.text, "second time")
    let stream = mock.converse(options: CallOptions())
    try await stream.send(.with { $0.payload.text = "a" })
    stream.finish()
    let converse = try await stream.results.collected()
    XCTAssertEqual(try converse.requireMessages().map(\.payload.text), ["re: a"])
  }
}
