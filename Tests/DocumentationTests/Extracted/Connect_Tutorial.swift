// Extracted from Sources/Connect/Connect.docc/Tutorial.md by `make generate`.

import Connect
import ConnectNIO
import ConnectTesting
import NIOCore
import XCTest

/// Talks with the Eliza service.
struct Companion: Sendable {
  let service: any Connectrpc_Eliza_V1_ElizaServiceClientInterface

  /// Asks the service, and has an answer when the service is away.
  func reply(to sentence: String) async throws -> String {
    do {
      return try await self.service.say(.with { $0.sentence = sentence }).sentence
    } catch let error as ConnectError where error.code == .unavailable {
      return "Please go on."
    }
  }

  /// The first sentences of the service's introduction.
  func introduction(for name: String, sentences count: Int) async throws -> [String] {
    var sentences: [String] = []
    for try await message in self.service.introduce(.with { $0.name = name }) {
      sentences.append(message.sentence)
      if sentences.count == count { break }  // Cancels the call.
    }
    return sentences
  }
}

/// Tells the server who calls, and prints calls that fail.
final class ClientNameInterceptor: Interceptor {
  private let name: String

  init(_ name: String) {
    self.name = name
  }

  func callFunction(_ method: MethodInfo) -> CallFunction {
    CallFunction(
      requestFunction: { [name] request in request.headers["x-client-name"] = [name] },
      outcomeFunction: { outcome in
        if let error = outcome.error { print("\(method.name) failed: \(error)") }
      }
    )
  }
}

struct CompanionProgram {
  static func main() async throws {
    let httpClient = NIOHTTPClient()
    let client = ProtocolClient(
      httpClient: httpClient,
      config: ProtocolClientConfig(
        host: CommandLine.arguments.dropFirst().first ?? "https://demo.connectrpc.com",
        interceptors: [{ _ in ClientNameInterceptor("companion") }],
        timeout: .seconds(10)
      )
    )
    let companion = Companion(service: Connectrpc_Eliza_V1_ElizaServiceClient(client: client))

    print(try await companion.reply(to: "I feel happy today"))
    await httpClient.shutdown()
  }
}

final class CompanionTests: XCTestCase {
  func testAsksTheService() async throws {
    let mock = Connectrpc_Eliza_V1_ElizaServiceClientMock()
    mock.mockSay.answer(.message(.with { $0.sentence = "Why do you feel happy today?" }))

    let reply = try await Companion(service: mock).reply(to: "I feel happy today")

    XCTAssertEqual(reply, "Why do you feel happy today?")
    let call = try await mock.mockSay.nextCall()
    try requireEqual(call.request, .with { $0.sentence = "I feel happy today" })
  }

  func testHasAReplyWhenTheServiceIsAway() async throws {
    let mock = Connectrpc_Eliza_V1_ElizaServiceClientMock()
    mock.mockSay.answer(.failure(ConnectError(code: .unavailable)))

    let reply = try await Companion(service: mock).reply(to: "I feel happy today")

    XCTAssertEqual(reply, "Please go on.")
  }

  func testStopsTheIntroductionOnTime() async throws {
    let mock = Connectrpc_Eliza_V1_ElizaServiceClientMock()
    mock.mockIntroduce.answer { request, responses, _ in
      for number in 1...1_000 {
        try await responses.send(.with { $0.sentence = "\(request.name), \(number)" })
      }
    }

    let sentences = try await Companion(service: mock).introduction(for: "Ada", sentences: 2)

    XCTAssertEqual(sentences, ["Ada, 1", "Ada, 2"])
    let call = try await mock.mockIntroduce.nextCall()
    let end = try await call.end()
    XCTAssertEqual(end, .canceled)
  }
}

final class ClientNameInterceptorTests: XCTestCase {
  func testAddsTheNameToEachCall() async throws {
    let driver = InterceptorDriver { _ in ClientNameInterceptor("test") }
    let method = Connectrpc_Eliza_V1_ElizaServiceClient.Methods.say.info

    let outcome = try driver.call(method).request(driver.makeRequest(message: ()))

    XCTAssertEqual(outcome.headers["x-client-name"], ["test"])
  }

  func testStandsInACall() async throws {
    let config = ProtocolClientConfig(
      host: "http://memory",
      interceptors: [{ _ in ClientNameInterceptor("test") }]
    )
    let mock = Connectrpc_Eliza_V1_ElizaServiceClientMock(MockService(config: config))
    mock.mockSay.answer { _, context in
      .with { $0.sentence = context.requestHeaders["x-client-name"].joined() }
    }

    let answer = try await mock.say(.with { $0.sentence = "Hello" })

    XCTAssertEqual(answer.sentence, "test")
  }
}
