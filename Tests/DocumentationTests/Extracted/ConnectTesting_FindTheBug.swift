// Extracted from Sources/ConnectTesting/ConnectTesting.docc/FindTheBug.md by `make generate`.

import Connect
import ConnectTesting
import XCTest

/// The token that all calls show.
actor LoginTokens {
  private(set) var token = "expired"
  private let fetch: @Sendable () async throws -> String

  init(fetch: @escaping @Sendable () async throws -> String) {
    self.fetch = fetch
  }

  /// Returns the token to show in the place of one that the server has refused.
  func token(after refused: String) async throws -> String {
    // Another call was faster: its token is new.
    guard refused == self.token else { return self.token }
    self.token = try await self.fetch()
    return self.token
  }
}

struct LoginTokenInterceptor: AsyncUnaryInterceptor {
  let tokens: LoginTokens

  func interceptUnary<Input: Sendable, Output: Sendable>(
    _ request: HTTPRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: UnaryNext<Input, Output>
  ) async throws -> ResponseMessage<Output> {
    var request = request
    let token = await self.tokens.token
    request.headers["authorization"] = ["Bearer \(token)"]
    let response = try await next(request)
    guard response.code == .unauthenticated else { return response }
    let newToken = try await self.tokens.token(after: token)
    request.headers["authorization"] = ["Bearer \(newToken)"]
    return try await next(request)
  }
}

final class LoginTokenInterceptorTests: XCTestCase {
  private let executor = VirtualExecutor()
  private let tokens = LoginTokens { "new" }

  private func makeMock() -> Connectrpc_Eliza_V1_ElizaServiceClientMock {
    let tokens = self.tokens
    let config = ProtocolClientConfig(
      host: "http://memory",
      interceptors: [{ _ in LoginTokenInterceptor(tokens: tokens) }]
    )
    return Connectrpc_Eliza_V1_ElizaServiceClientMock(MockService(config: config, executor: self.executor))
  }

  func testGetsAnotherTokenWhenTheServerRefusesOne() async throws {
    let mock = self.makeMock()
    mock.mockSay.answer(.failure(ConnectError(code: .unauthenticated)), .message(.with { $0.sentence = "Hello" }))
    let answer = try await self.executor.lettingTimePass { try await mock.say(.init()) }
    XCTAssertEqual(answer.sentence, "Hello")
    let token = await self.tokens.token
    XCTAssertEqual(token, "new")
  }

  func testGivesUpWhenTheServerRefusesBoth() async throws {
    let mock = self.makeMock()
    let refused = ConnectError(code: .unauthenticated)
    mock.mockSay.answer(.failure(refused), .failure(refused))
    do {
      _ = try await self.executor.lettingTimePass { try await mock.say(.init()) }
      XCTFail("the call succeeded")
    } catch let error as ConnectError {
      XCTAssertEqual(error.code, .unauthenticated)
    }
  }
}

/// The token that all calls show.
actor SharedLoginTokens {
  private(set) var token = "expired"
  private var running: Task<String, any Error>?
  private let fetch: @Sendable () async throws -> String

  init(fetch: @escaping @Sendable () async throws -> String) {
    self.fetch = fetch
  }

  /// Returns the token to show in the place of one that the server has refused.
  func token(after refused: String) async throws -> String {
    // Another call was faster: its token is new.
    guard refused == self.token else { return self.token }
    if let running = self.running { return try await running.value }
    let task = Task { try await self.fetch() }
    self.running = task
    defer { self.running = nil }
    self.token = try await task.value
    return self.token
  }
}

private func ConnectTesting_FindTheBug_3() async throws {
  /// What the tests explore.
  func exploreLoginTokens() -> InterceptorExplorer<Void> {
    InterceptorExplorer { world in
      let tokens = LoginTokens {
        try await world.step("token endpoint")
        return world.token()
      }
      return Subject { _ in LoginTokenInterceptor(tokens: tokens) }
    }
    .calls(2)
    .server(.answering { attempt in
      attempt.headers["authorization"] == ["Bearer expired"] ? [.unauthenticated] : [.ok, .unavailable]
    })
    .check("one refresh") { run in run.steps.count <= 1 }
  }

  func testLoginTokens() async throws {
    try await exploreLoginTokens().explore()
  }
}
