import ConnectSwiftCompatibility
import ConnectSwiftExample
import ConnectTesting
import XCTest

/// The app that was written for connect-swift, with its interceptors, against a server in memory.
final class ExampleTests: XCTestCase {
  private struct Tokens: TokenProvider {
    let token: String?

    func fetchToken(completion: @escaping @Sendable (String?) -> Void) {
      DispatchQueue.global().async { completion(self.token) }
    }
  }

  private let transport = InMemoryTransport()
  private let steps = Steps()
  private let say = Connect::MethodSpec<Connectrpc_Eliza_V1_SayRequest, Connectrpc_Eliza_V1_SayResponse>(
    path: "/connectrpc.eliza.v1.ElizaService/Say",
    streamType: .unary,
    idempotencyLevel: .noSideEffects
  )
  private let converse = Connect::MethodSpec<
    Connectrpc_Eliza_V1_ConverseRequest, Connectrpc_Eliza_V1_ConverseResponse
  >(path: "/connectrpc.eliza.v1.ElizaService/Converse", streamType: .bidirectionalStream)

  override func setUp() {
    self.transport.onUnary(self.say) { request, context in
      let token = context.requestHeaders.first("authorization") ?? "nobody"
      return .with { $0.sentence = "\(context.request.method) \(token): \(request.sentence)" }
    }
    self.transport.onBidirectionalStream(self.converse) { requests, responses, context in
      context.responseHeaders["x-eliza"] = [context.requestHeaders.first("authorization") ?? "nobody"]
      for try await request in requests { try await responses.send(.with { $0.sentence = request.sentence }) }
    }
  }

  private func client(
    _ networkProtocol: NetworkProtocol = .connect,
    token: String? = "42"
  ) -> Connectrpc_Eliza_V1_ElizaServiceClient {
    makeElizaClient(
      httpClient: self.transport,
      networkProtocol: networkProtocol,
      provider: Tokens(token: token),
      log: { [steps] in steps.add($0) }
    )
  }

  @MainActor
  func testUnaryChat() async {
    let chat = UnaryChat(client: self.client())
    await chat.send("hi")
    XCTAssertEqual(chat.messages.map(\.text), ["hi", "GET Bearer 42: hi"])
    let log = self.steps.all.filter { $0 != "metrics" }
    XCTAssertEqual(log, ["GET /connectrpc.eliza.v1.ElizaService/Say 4 bytes", "ok 200 19 bytes"])
  }

  @MainActor
  func testUnaryChatWithoutToken() async {
    let chat = UnaryChat(client: self.client(.grpc, token: nil))
    await chat.send("hi")
    XCTAssertEqual(chat.messages.last?.text, "unauthenticated: there is no token, retry never")
    XCTAssertEqual(self.steps.all, [])
  }

  @MainActor
  func testStreamingChat() async {
    let chat = StreamingChat(client: self.client(.grpcWeb))
    chat.send("hi")
    chat.send("how are you?")
    chat.endChat()
    await chat.observeResponses()
    XCTAssertEqual(
      chat.messages.map(\.text),
      ["hi", "how are you?", "hello [\"Bearer 42\"]", "hi", "how are you?", "ok bye [:]"]
    )
    XCTAssertTrue(self.steps.all.contains("stream Converse"))
    XCTAssertEqual(self.steps.all.filter { $0 == "received connectrpc.eliza.v1.ConverseResponse" }.count, 2)
    XCTAssertTrue(self.steps.all.contains("complete ok"))
    chat.send("too late")
    XCTAssertEqual(chat.messages.last?.text, "failed_precondition: the stream's request has ended")
  }

  func testCallbackChat() async {
    let received = Received<String?>()
    let chat = CallbackChat(client: self.client())
    chat.say("hi") { received.add($0) }
    let first = await received.first(1)
    XCTAssertEqual(first, ["GET Bearer 42: hi"])
    chat.converse(["a", "b"]) { received.add($0) }
    let all = await received.first(4)
    XCTAssertEqual(all.dropFirst(), ["a", "b", nil])
  }
}
