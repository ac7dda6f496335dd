import ConnectSwiftCompatibility
import ConnectSwiftExample
import XCTest

/// Tests as they were written for connect-swift: an app's types with mocks in the place of its client.
final class MockTests: XCTestCase {
  @MainActor
  func testUnaryChat() async {
    let client = Connectrpc_Eliza_V1_ElizaServiceClientMock()
    client.mockAsyncSay = { request in
      XCTAssertEqual(request.sentence, "hello!")
      return ResponseMessage(result: .success(.with { $0.sentence = "hi" }))
    }
    let chat = UnaryChat(client: client)
    await chat.send("hello!")
    XCTAssertEqual(chat.messages.map(\.text), ["hello!", "hi"])

    client.mockAsyncSay = { _ in
      ResponseMessage(
        result: .failure(
          ConnectError(
            code: .unavailable,
            message: "asleep",
            exception: nil,
            details: [],
            metadata: ["retry-after": ["5"]]
          )
        )
      )
    }
    await chat.send("still there?")
    XCTAssertEqual(chat.messages.last?.text, "unavailable: asleep, retry 5")
  }

  @MainActor
  func testStreamingChat() async {
    let client = Connectrpc_Eliza_V1_ElizaServiceClientMock()
    client.mockAsyncConverse.outputs = [
      .headers(["x-eliza": ["1"]]),
      .message(.with { $0.sentence = "hi" }),
      .complete(code: .ok, error: nil, trailers: ["x-end": ["1"]]),
    ]
    var sent = [String]()
    var isClosed = false
    client.mockAsyncConverse.onSend = { sent.append($0.sentence) }
    client.mockAsyncConverse.onClose = { isClosed = true }
    let chat = StreamingChat(client: client)
    chat.send("hello!")
    await chat.observeResponses()
    chat.endChat()
    XCTAssertEqual(
      chat.messages.map(\.text),
      ["hello!", "hello [\"1\"]", "hi", "ok bye [\"x-end\": [\"1\"]]"]
    )
    XCTAssertEqual(sent, ["hello!"])
    XCTAssertEqual(client.mockAsyncConverse.inputs.map(\.sentence), ["hello!"])
    XCTAssertTrue(isClosed)
    XCTAssertTrue(client.mockAsyncConverse.isClosed)
  }

  func testCallbacks() {
    let client = Connectrpc_Eliza_V1_ElizaServiceClientMock()
    let chat = CallbackChat(client: client)
    let received = Received<String?>()
    client.mockSay = { request in
      ResponseMessage(result: .success(.with { $0.sentence = request.sentence + "?" }))
    }
    chat.say("hello") { received.add($0) }
    XCTAssertEqual(received.values, ["hello?"])

    client.mockIntroduce.outputs = [
      .message(.with { $0.sentence = "I am Eliza" }), .complete(code: .ok, error: nil, trailers: nil),
    ]
    chat.introduce(name: "Ada") { received.add($0) }
    XCTAssertEqual(received.values, ["hello?", "I am Eliza", nil])
    XCTAssertEqual(client.mockIntroduce.inputs.map(\.name), ["Ada"])

    client.mockConverse.outputs = [.message(.with { $0.sentence = "go on" })]
    chat.converse(["a", "b"]) { received.add($0) }
    XCTAssertEqual(received.values.last, "go on")
    XCTAssertEqual(client.mockConverse.inputs.map(\.sentence), ["a", "b"])
    XCTAssertTrue(client.mockConverse.isClosed)
  }

  func testOutputsSetWhileTheMessageIsSent() async throws {
    let stream = MockServerOnlyAsyncStream<
      Connectrpc_Eliza_V1_IntroduceRequest, Connectrpc_Eliza_V1_IntroduceResponse
    >()
    stream.onSend = { request in stream.outputs = [.message(.with { $0.sentence = request.name })] }
    let reader = Task {
      var sentences: [String] = []
      for await result in stream.results() { sentences.append(result.messageValue?.sentence ?? "") }
      return sentences
    }
    try stream.send(.with { $0.name = "Ada" })
    let sentences = await reader.value
    XCTAssertEqual(sentences, ["Ada"])
    stream.onSend = nil
  }

  func testSubclassOfAMock() throws {
    final class Failing: MockClientOnlyAsyncStream<
      Connectrpc_Eliza_V1_SayRequest, Connectrpc_Eliza_V1_SayResponse
    >, @unchecked Sendable
    {
      override func send(_ input: Connectrpc_Eliza_V1_SayRequest) throws -> Self {
        throw ConnectError.canceled()
      }
    }
    let stream:
      any ClientOnlyAsyncStreamInterface<
        Connectrpc_Eliza_V1_SayRequest, Connectrpc_Eliza_V1_SayResponse
      > = Failing()
    XCTAssertThrowsError(try stream.send(.init()))
    stream.closeAndReceive()
    XCTAssertEqual((stream as? Failing)?.isClosed, true)
  }

  func testDefaultAnswerIsAnEmptyMessage() async {
    let client = Connectrpc_Eliza_V1_ElizaServiceClientMock()
    let response = await client.say(request: .init())
    XCTAssertEqual(response.message, .init())
  }
}
