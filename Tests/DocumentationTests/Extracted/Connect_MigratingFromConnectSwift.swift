// Extracted from Sources/Connect/Connect.docc/MigratingFromConnectSwift.md by `make generate`.

import Connect
import ConnectTesting
import XCTest

struct MovedAuthInterceptor: AsyncUnaryInterceptor {
  let fetchToken: @Sendable () async -> String?

  func interceptUnary<Input: Sendable, Output: Sendable>(
    _ request: HTTPRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: UnaryNext<Input, Output>
  ) async throws -> ResponseMessage<Output> {
    guard let token = await self.fetchToken() else {
      throw ConnectError(code: .unauthenticated, message: "there is no token")
    }
    var request = request
    request.headers["authorization"] = ["Bearer \(token)"]
    return try await next(request)
  }
}

final class MovedChatTests: XCTestCase {
  func testAnswer() async throws {
    let mock = Connectrpc_Eliza_V1_ElizaServiceClientMock()
    mock.mockSay.answer(.message(.with { $0.sentence = "Hi" }))

    let answer = try await mock.say(.with { $0.sentence = "Hello" })

    XCTAssertEqual(answer.sentence, "Hi")
    XCTAssertEqual(mock.mockSay.calls.map(\.request?.sentence), ["Hello"])
  }
}

private func Connect_MigratingFromConnectSwift_5() async throws {
  let eliza: Connectrpc_Eliza_V1_ElizaServiceClient = given()
  let sentence = "Hello"
  let options = CallOptions(headers: ["x-chat": ["unary"]], timeout: .seconds(2))
  let answer = try await eliza.say(.with { $0.sentence = sentence }, options: options)
  print(answer.sentence)

  // With the metadata around the message or the error:
  let response = await eliza.say(request: .with { $0.sentence = sentence }, options: options)
  if let error = response.error, error.code == .unavailable {
    print(error.metadata.first("retry-after") ?? "no hint")
  }
  _ = eliza
  _ = sentence
  _ = options
  _ = answer
  _ = response
}

private func Connect_MigratingFromConnectSwift_6() async throws {
  let eliza: Connectrpc_Eliza_V1_ElizaServiceClient = given()
  let stream = eliza.converse()
  try await stream.send(.with { $0.sentence = "Hello" })
  stream.finish()
  for await result in stream.results {
    switch result {
    case .headers(let headers): print(headers)
    case .message(let message): print(message.sentence)
    case .complete(let code, let error, _): print(code, error?.message ?? "")
    }
  }
  for try await message in eliza.introduce(.with { $0.name = "Ada" }) {
    print(message.sentence)
  }
  _ = eliza
  _ = stream
}

private func Connect_MigratingFromConnectSwift_8() async throws {
  let config = ProtocolClientConfig(
    host: "https://demo.connectrpc.com",
    interceptors: [{ _ in MovedAuthInterceptor(fetchToken: { "42" }) }]
  )
  _ = config
}
