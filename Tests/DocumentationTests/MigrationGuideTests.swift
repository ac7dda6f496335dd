import Connect
import ConnectInterceptors
import ConnectTesting
import NIOCore
import Synchronization
import XCTest

/// Runs the code of the guides for those who come from other libraries.
final class MigrationGuideTests: XCTestCase {
  private final class Lines: Sendable {
    private let state = Mutex<[String]>([])
    var all: [String] { self.state.withLock { $0 } }
    func add(_ line: String) { self.state.withLock { $0.append(line) } }
  }

  private typealias Mock = Connectrpc_Eliza_V1_ElizaServiceClientMock

  private static let say = "/connectrpc.eliza.v1.ElizaService/Say"

  // MARK: Apollo

  func testTheChainOfTheApolloGuide() async throws {
    let lines = Lines()
    let mock = Mock(MockService(config: .audited { lines.add($0) }))
    mock.mockSay.answer { request, _ in .with { $0.sentence = "\(request.sentence)!" } }
    let first = try await mock.say(.with { $0.sentence = "Hello" })
    let second = try await mock.say(.with { $0.sentence = "Hello" })
    XCTAssertEqual([first.sentence, second.sentence], ["Hello!", "Hello!"])
    let call = ["begin \(Self.say)", "end \(Self.say): ok"]
    XCTAssertEqual(lines.all, call + call)
  }

  func testTheStreamOfTheApolloGuide() async throws {
    let lines = Lines()
    let mock = Mock(MockService(config: .audited { lines.add($0) }))
    mock.mockIntroduce.answer { _, responses, _ in
      try await responses.send(.with { $0.sentence = "Hi" })
      throw ConnectError(code: .dataLoss, message: "secret")
    }
    let stream = mock.introduce(.with { $0.name = "Ada" })
    var sentences: [String] = []
    do {
      for try await message in stream { sentences.append(message.sentence) }
      XCTFail("the stream fails")
    } catch {
      XCTAssertEqual((error as? ConnectError)?.message, "the service has failed")
    }
    XCTAssertEqual(sentences, ["Hi"])
    XCTAssertTrue(lines.all.contains { $0.hasSuffix("data_loss") }, "\(lines.all)")
  }

  /// The session is fetched again for the new attempt, since the retry begins at the start.
  func testTheSessionOfTheApolloGuide() async throws {
    let sessions = Lines()
    let seen = Lines()
    var config = ProtocolClientConfig(host: "https://api.example.com")
    config.interceptors = [
      { _ in
        SessionHeader { completion in
          sessions.add("asked")
          completion("s\(sessions.all.count)")
        }
      }
    ]
    let mock = Mock(MockService(config: config))
    mock.mockSay.answer { request, context in
      let session = context.requestHeaders["x-session"].joined()
      seen.add(session)
      if session == "s1" { throw ConnectError(code: .unauthenticated) }
      return .with { $0.sentence = request.sentence }
    }
    let answer = try await mock.say(.with { $0.sentence = "Hello" })
    XCTAssertEqual(answer.sentence, "Hello")
    XCTAssertEqual(seen.all, ["s1", "s2"])
  }

  // MARK: Alamofire

  func testTheAdaptersAndRetriersOfTheAlamofireGuide() async throws {
    let seen = Lines()
    let mock = Mock(MockService(config: .withKey("k3y")))
    mock.mockSay.answer { request, context in
      seen.add(context.requestHeaders["x-api-key"].joined())
      if seen.all.count < 3 { throw ConnectError(code: .aborted) }
      return .with { $0.sentence = request.sentence }
    }
    let answer = try await mock.say(.with { $0.sentence = "Hello" })
    XCTAssertEqual(answer.sentence, "Hello")
    XCTAssertEqual(seen.all, ["k3y", "k3y", "k3y"])
  }

  func testTheVersionOfTheAlamofireGuide() async throws {
    let seen = Lines()
    var config = ProtocolClientConfig(host: "https://api.example.com")
    config.interceptors = [{ _ in RequestInterceptor(adapters: [VersionAdapter(version: 7)]) }]
    let mock = Mock(MockService(config: config))
    mock.mockSay.answer { _, context in
      seen.add(context.requestHeaders["x-client-version"].joined())
      return Connectrpc_Eliza_V1_SayResponse()
    }
    _ = try await mock.say(.with { $0.sentence = "Hello" })
    XCTAssertEqual(seen.all, ["7"])
  }

  func testTheCredentialsOfTheAlamofireGuide() async throws {
    let fetched = Lines()
    let seen = Lines()
    let mock = Mock(
      MockService(
        config: .withToken {
          fetched.add("token")
          return "t\(fetched.all.count)"
        }
      )
    )
    mock.mockSay.answer { _, context in
      let token = context.requestHeaders["authorization"].joined()
      seen.add(token)
      if token == "Bearer t1" { throw ConnectError(code: .unauthenticated) }
      return Connectrpc_Eliza_V1_SayResponse()
    }
    _ = try await mock.say(.with { $0.sentence = "Hello" })
    XCTAssertEqual(seen.all, ["Bearer t1", "Bearer t2"])
  }
}
