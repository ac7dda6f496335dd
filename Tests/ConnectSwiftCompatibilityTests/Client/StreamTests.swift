import ConnectSwiftCompatibility
import ConnectTesting
import LoopbackServer
import XCTest

/// Streams of all kinds in both forms, as stubs in connect-swift's form make them.
final class StreamTests: XCTestCase {
  private typealias Sum = Connect_Test_V1_SumResponse
  private typealias Converse = Connect_Test_V1_ConverseResponse
  private typealias Count = Connect_Test_V1_CountResponse

  private let service = MemoryService()

  // MARK: async

  func testBidirectionalStream() async throws {
    let stream = self.service.client().converse()
    try stream.send(.with { $0.payload.text = "one" }).send(.with { $0.payload.text = "two" })
    var answers: [String] = []
    // Each call of `results()` goes on where the one before stopped.
    for await result in stream.results() {
      guard let message = result.messageValue else { continue }
      answers.append(message.payload.text)
      if answers.count == 2 { break }
    }
    XCTAssertEqual(answers, ["one", "two"])
    stream.close()
    var rest: [StreamResult<Converse>] = []
    for await result in stream.results() { rest.append(result) }
    XCTAssertEqual(rest, [.complete(code: .ok, error: nil, trailers: nil)])
  }

  func testServerOnlyStreamWhoseResultsAreReadBeforeItsRequestIsSent() async throws {
    let stream = self.service.client().count(headers: ["x-call": ["1"]])
    let reader = Task {
      var results: [StreamResult<Count>] = []
      for await result in stream.results() { results.append(result) }
      return results
    }
    try stream.send(.with { $0.from = 5 })
    let results = await reader.value
    guard case .headers? = results.first else { return XCTFail("no headers: \(results)") }
    XCTAssertEqual(results.compactMap { $0.messageValue?.number }, [5, 6])
    XCTAssertEqual(results.last, .complete(code: .ok, error: nil, trailers: nil))
    XCTAssertEqual(self.service.requests.values.first?["x-call"], ["1"])
    XCTAssertThrowsError(try stream.send(.init())) {
      XCTAssertEqual(($0 as? ConnectError)?.code, .failedPrecondition)
    }
  }

  func testClientOnlyStream() async throws {
    let stream = self.service.client().sum()
    for number in 1...3 { try stream.send(.with { $0.number = Int64(number) }) }
    stream.closeAndReceive()
    XCTAssertThrowsError(try stream.send(.init()))
    var results: [StreamResult<Sum>] = []
    for await result in stream.results() { results.append(result) }
    XCTAssertEqual(results.count, 3)
    guard case .headers(let headers)? = results.first else { return XCTFail("no headers: \(results)") }
    XCTAssertEqual(headers["x-server"], ["memory"])
    XCTAssertEqual(results.dropFirst().first?.messageValue?.sum, 6)
    XCTAssertEqual(results.last, .complete(code: .ok, error: nil, trailers: nil))
  }

  func testCancel() async throws {
    let client = self.service.client()
    let bidirectional = client.converse()
    bidirectional.cancel()
    await self.expectCanceled(bidirectional.results())
    XCTAssertThrowsError(try bidirectional.send(.init())) {
      XCTAssertEqual(($0 as? ConnectError)?.code, .failedPrecondition)
    }
    let serverOnly = client.count()
    serverOnly.cancel()
    await self.expectCanceled(serverOnly.results())
    let clientOnly = client.sum()
    clientOnly.cancel()
    await self.expectCanceled(clientOnly.results())
  }

  private func expectCanceled<Output: ProtobufMessage & Equatable>(
    _ results: AsyncStream<StreamResult<Output>>,
    line: UInt = #line
  ) async {
    var all: [StreamResult<Output>] = []
    for await result in results { all.append(result) }
    XCTAssertEqual(
      all,
      [.complete(code: .canceled, error: ConnectError.canceled(), trailers: nil)],
      line: line
    )
  }

  /// A handler that notes when its client has gone away.
  private func holdCalls(of path: String) -> Received<String> {
    let gone = Received<String>()
    self.service.transport.onRaw(path) { exchange in
      gone.add("begun")
      await withTaskCancellationHandler {
        try? await Task.sleep(for: .seconds(600))
      } onCancel: {
        gone.add("gone")
      }
    }
    return gone
  }

  func testDroppedStreamIsCancelled() async throws {
    let gone = self.holdCalls(of: "/connect.test.v1.TestService/Converse")
    func start() async throws {
      let stream = self.service.client().converse()
      try stream.send(.init())
      _ = await gone.first(1)
      withExtendedLifetime(stream) {}
    }
    try await start()
    let all = await gone.first(2)
    XCTAssertEqual(all, ["begun", "gone"])
  }

  func testMessageThatCannotBeQueuedEndsTheStreamWithTheReason() async throws {
    _ = self.holdCalls(of: "/connect.test.v1.TestService/Converse")
    var config = ProtocolClientConfig(host: "http://memory").native
    config.limits.maximumQueuedMessages = 1
    let client = Connect_Test_V1_TestServiceClient(
      client: ProtocolClient(httpClient: self.service.transport, config: config)
    )
    let stream = client.converse()
    let large = Connect_Test_V1_ConverseRequest.with {
      $0.payload.text = String(repeating: "x", count: 100_000)
    }
    for _ in 1...8 { _ = try? stream.send(large) }
    var results: [StreamResult<Converse>] = []
    for await result in stream.results() { results.append(result) }
    guard case .complete(let code, let error, _)? = results.last else { return XCTFail("no end") }
    XCTAssertEqual(code, .resourceExhausted, "\(String(describing: error))")
  }

  func testErrorOfAServer() async throws {
    self.service.transport.onClientStream(MemoryService.Methods.sum) { _, _ in
      throw Connect::ConnectError(code: .unavailable, message: "not now", metadata: ["retry-after": ["5"]])
    }
    let stream = self.service.client().sum()
    stream.closeAndReceive()
    var results: [StreamResult<Sum>] = []
    for await result in stream.results() { results.append(result) }
    guard case .complete(let code, let error, _)? = results.last else { return XCTFail("no end") }
    XCTAssertEqual(code, .unavailable)
    XCTAssertEqual((error as? ConnectError)?.message, "not now")
    XCTAssertEqual((error as? ConnectError)?.metadata["retry-after"], ["5"])
    XCTAssertEqual(results.filter { $0.messageValue != nil }.count, 0)
  }

  // MARK: Callbacks

  func testUnaryCallback() async {
    let received = Received<ResponseMessage<Connect_Test_V1_EchoResponse>>()
    self.service.client().echo(request: .with { $0.payload.text = "hi" }) { received.add($0) }
    let response = await received.first(1)[0]
    XCTAssertEqual(response.message?.payload.text, "hi")
    XCTAssertEqual(response.headers["x-server"], ["memory"])
  }

  func testUnaryCallbackIsCancelled() async {
    let gone = self.holdCalls(of: "/connect.test.v1.TestService/Echo")
    let received = Received<ResponseMessage<Connect_Test_V1_EchoResponse>>()
    let cancelable = self.service.client().echo(request: .init()) { received.add($0) }
    _ = await gone.first(1)
    cancelable.cancel()
    let response = await received.first(1)[0]
    XCTAssertEqual(response.error?.code, .canceled)
    let all = await gone.first(2)
    XCTAssertEqual(all, ["begun", "gone"])
  }

  func testBidirectionalCallbacks() async {
    let received = Received<StreamResult<Converse>>()
    let stream = self.service.client().converse { received.add($0) }
    stream.send(.with { $0.payload.text = "one" }).send(.with { $0.payload.text = "two" })
    stream.close()
    stream.send(.with { $0.payload.text = "too late" })
    let results = await received.first(4)
    XCTAssertEqual(results.compactMap { $0.messageValue?.payload.text }, ["one", "two"])
    XCTAssertEqual(results.last, .complete(code: .ok, error: nil, trailers: nil))
  }

  func testServerOnlyCallbacks() async {
    let received = Received<StreamResult<Count>>()
    let stream = self.service.client().count { received.add($0) }
    stream.send(.with { $0.from = 5 })
    stream.send(.with { $0.from = 500 })
    let results = await received.first(4)
    XCTAssertEqual(results.compactMap { $0.messageValue?.number }, [5, 6])
    XCTAssertEqual(results.last, .complete(code: .ok, error: nil, trailers: nil))
  }

  func testClientOnlyCallbacks() async throws {
    let received = Received<StreamResult<Sum>>()
    let stream = self.service.client().sum { received.add($0) }
    try stream.send(.with { $0.number = 3 }).send(.with { $0.number = 4 })
    stream.closeAndReceive()
    let results = await received.first(3)
    XCTAssertEqual(results.compactMap { $0.messageValue?.sum }, [7])
    XCTAssertEqual(results.last, .complete(code: .ok, error: nil, trailers: nil))
  }

  func testCallbacksOfCancelledStreams() async {
    let received = Received<StreamResult<Count>>()
    let stream = self.service.client().count { received.add($0) }
    stream.cancel()
    let results = await received.first(1)
    guard case .complete(.canceled, _?, _) = results[0] else { return XCTFail("\(results)") }
  }
}
