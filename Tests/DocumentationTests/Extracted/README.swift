// Extracted from README.md by `make generate`.

import Connect
import ConnectNIO
import ConnectTesting
import XCTest

final class BearerToken: Interceptor {
  private let token: @Sendable () async -> String

  init(_ token: @escaping @Sendable () async -> String) {
    self.token = token
  }

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      requestFunction: { [token] request, proceed in
        Task {
          var request = request
          request.headers["authorization"] = ["Bearer \(await token())"]
          proceed(.success(request))
        }
      },
      responseFunction: { response, proceed in
        // The server has refused the call, and processed nothing: a retry is safe.
        if response.code == .unauthenticated {
          proceed.retry(after: .milliseconds(100))
        } else {
          proceed(response)
        }
      }
    )
  }
}

final class ElizaTests: XCTestCase {
  func testAsks() async throws {
    let mock = Connectrpc_Eliza_V1_ElizaServiceClientMock()
    mock.mockSay.answer(.message(.with { $0.sentence = "You said: Hello" }))

    // What is tested takes `any Connectrpc_Eliza_V1_ElizaServiceClientInterface`.
    let answer = try await mock.say(.with { $0.sentence = "Hello" })

    XCTAssertEqual(answer.sentence, "You said: Hello")
    let call = try await mock.mockSay.nextCall()
    try requireEqual(call.request, .with { $0.sentence = "Hello" })
  }
}

private func README_1() async throws {
  let httpClient = NIOHTTPClient()
  let client = ProtocolClient(
    httpClient: httpClient,
    config: ProtocolClientConfig(host: "https://demo.connectrpc.com", timeout: .seconds(10))
  )
  let eliza = Connectrpc_Eliza_V1_ElizaServiceClient(client: client)

  let answer = try await eliza.say(.with { $0.sentence = "Hello" })
  print(answer.sentence)
  _ = httpClient
  _ = client
  _ = eliza
  _ = answer
}

private func README_3() async throws {
  let config = ProtocolClientConfig(
    host: "https://api.example.com",
    interceptors: [{ _ in BearerToken { "t0k3n" } }]
  )
  _ = config
}
