import ConnectSwiftCompatibility
import ConnectTesting
import LoopbackServer
import Synchronization
import XCTest

final class InterceptorFactoryTests: XCTestCase {
  private final class Unary: UnaryInterceptor {}
  private final class Stream: StreamInterceptor {}

  @TaskLocal private static var name = "none"

  private let service = MemoryService()

  func testMakesInterceptorsForTheirKindOfCallOnly() async throws {
    let made = Steps()
    let client = self.service.client(
      InterceptorFactory { config in
        made.add("unary for \(config.host) in \(Self.name)")
        return Unary()
      },
      InterceptorFactory { _ in
        made.add("stream")
        return Stream()
      }
    )
    _ = await Self.$name.withValue("test") { await client.echo(request: .init()) }
    XCTAssertEqual(made.all, ["unary for http://memory in test"])
    let stream = client.count()
    try stream.send(.init())
    for await _ in stream.results() {}
    XCTAssertEqual(made.all, ["unary for http://memory in test", "stream"])
  }

  func testStandsInAConfigurationOfThisLibrary() async {
    let steps = Steps()
    let factory = InterceptorFactory { config in
      steps.add("timeout \(config.timeout ?? 0)")
      return NotingInterceptor("a", steps)
    }
    let config = Connect::ProtocolClientConfig(
      host: "http://memory",
      interceptors: [factory.native],
      timeout: .milliseconds(30_500)
    )
    let client = Connect_Test_V1_TestServiceClient(
      client: ProtocolClient(httpClient: self.service.transport, config: config)
    )
    let response = await client.echo(request: .with { $0.payload.text = "hi" })
    XCTAssertEqual(response.message?.payload.text, "hi")
    XCTAssertEqual(steps.all.prefix(2), ["timeout 30.5", "a request"])
  }

  func testInterceptorsOfThisLibraryStandAmongOthers() async {
    struct Native: Connect::Interceptor {
      let steps: Steps

      func unaryFunction() -> UnaryFunction {
        UnaryFunction(updateRequest: { _ in self.steps.add("native raw request") })
      }
    }
    let steps = Steps()
    let client = self.service.client(
      InterceptorFactory { _ in NotingInterceptor("a", steps) },
      InterceptorFactory(native: { _ in Native(steps: steps) }),
      InterceptorFactory { _ in NotingInterceptor("b", steps) }
    )
    _ = await client.echo(request: .init())
    XCTAssertEqual(
      steps.all.filter { $0.contains("request") },
      ["a request", "b request", "a raw request", "native raw request", "b raw request"]
    )
  }

  /// Hooks for messages of other families are left out, as connect-swift has no such messages.
  func testMessagesThatAreNoProtobuf() async throws {
    struct Ping: Codable, Equatable { var text = "" }
    let method = Connect::MethodSpec<Ping, Ping>(codablePath: "/pings/Ping", streamType: .unary)
    self.service.transport.onUnary(method) { ping, _ in ping }
    let steps = Steps()
    let factory = InterceptorFactory { _ in NotingInterceptor("a", steps) }
    let client = ProtocolClient(
      httpClient: self.service.transport,
      config: ProtocolClientConfig(host: "http://memory", interceptors: [factory])
    )
    let answer = try await client.unary(method, Ping(text: "hi")).get()
    XCTAssertEqual(answer, Ping(text: "hi"))
    XCTAssertEqual(steps.all.filter { !$0.hasSuffix("metrics") }, ["a raw request", "a raw response ok"])
  }
}
