internal import ConformanceMessages
internal import Connect
internal import XCTest

@testable internal import ConnectConformanceClient

/// What the library promises, broken on purpose: each of it has to fail the case.
final class InvariantTests: XCTestCase {
  private typealias Response = Connectrpc_Conformance_V1_ServerStreamResponse
  private typealias Item = StreamResult<Response>

  private static let ok = Item.complete(code: .ok, error: nil, trailers: Headers())
  private static let error = ConnectError(code: .aborted)

  /// What is reported of `body`'s doings; nil if that is nothing.
  private func failure(_ body: (Invariants) async -> Void) async -> String? {
    let invariants = Invariants { XCTFail("late: \($0)") }
    await body(invariants)
    do {
      try invariants.close()
      return nil
    } catch {
      return error.description
    }
  }

  // MARK: The kinds of promises

  func testStreams() async {
    let streams: [(String?, [Item])] = [
      (nil, [.headers(Headers()), .message(Response()), Self.ok]),
      (nil, [.headers(Headers()), Self.ok]),
      (nil, [.failed(Self.error)]),
      ("the stream had headers twice", [.headers(Headers()), .headers(Headers()), Self.ok]),
      (
        "the stream had headers twice; headers came after a message",
        [.headers(Headers()), .message(Response()), .headers(Headers()), Self.ok]
      ),
      ("a message came before the headers", [.message(Response()), Self.ok]),
      ("the stream went on after its end", [.headers(Headers()), Self.ok, .message(Response())]),
      ("the stream went on after its end", [.headers(Headers()), Self.ok, Self.ok]),
      ("the stream's results ended without telling how the call ended", [.headers(Headers())]),
      (
        "a stream without an error has the code aborted",
        [.headers(Headers()), .complete(code: .aborted, error: nil, trailers: Headers())]
      ),
      (
        "code unknown came with an error of code aborted",
        [.complete(code: .unknown, error: Self.error, trailers: Headers())]
      ),
    ]
    for (expected, items) in streams {
      let failure = await self.failure { invariants in
        var recorder = StreamRecorder<Response>(invariants)
        for item in items { recorder.record(item) }
        recorder.recordEndOfResults()
      }
      XCTAssertEqual(failure, expected.map { "broken: \($0)" }, "\(items)")
    }
  }

  func testSingleResponses() async {
    typealias Unary = Connectrpc_Conformance_V1_UnaryResponse
    // None can be made whose code and error do not agree.
    for response in [
      ResponseMessage(message: Unary()), ResponseMessage(error: Self.error),
      ResponseMessage(code: .aborted, result: .success(Unary())),
      ResponseMessage(code: .ok, result: .failure(Self.error)),
    ] {
      let failure = await self.failure { invariants in
        var result = ResponseResult()
        result.record(response, invariants)
        let code = Connectrpc_Conformance_V1_Code(rawValue: response.code.rawValue)
        if result.hasError != (response.code != .ok) || (result.hasError && result.error.code != code) {
          invariants.report("\(response.code) was recorded as \(result.error.code)")
        }
      }
      XCTAssertNil(failure)
    }
  }

  func testCallbacksOfStreams() async {
    let calls: [(String?, [Item])] = [
      (nil, [.headers(Headers())]),
      // The end may come unasked.
      (nil, [.headers(Headers()), .failed(Self.error)]),
      ("a result came that was not asked for", [.headers(Headers()), .message(Response())]),
      ("the stream called back after its end", [Self.ok, Self.ok]),
      ("the stream called back after its end", [Self.ok, .message(Response())]),
    ]
    for (expected, items) in calls {
      let failure = await self.failure { invariants in
        let queue = CallbackQueue<Response>(invariants)
        XCTAssertTrue(queue.mustAsk())
        XCTAssertFalse(queue.mustAsk())
        for item in items { queue.receive(item) }
        for _ in items { _ = await queue.next() }
      }
      XCTAssertEqual(failure, expected.map { "broken: \($0)" }, "\(items)")
    }
  }

  func testACallbackThatIsCalledTwice() async {
    let failure = await self.failure { invariants in
      let outcome = OneShot<Int>()
      let callback = outcome.callback(invariants)
      callback(1)
      callback(2)
      let value = await outcome.value()
      XCTAssertEqual(value, 1)
    }
    XCTAssertEqual(failure, "broken: a callback was called twice")
  }

  func testAMessageThatIsAcceptedAfterTheEnd() async {
    let answers: [(ConnectError?, String?)] = [
      (nil, "broken: a message was accepted after the end"), (Self.error, nil),
    ]
    for (error, expected) in answers {
      let failure = await self.failure { invariants in
        let request = RequestSide<Response>(send: { _ in error }, finish: {}, cancel: {})
        await request.checkEnd(invariants)
      }
      XCTAssertEqual(failure, expected)
    }
  }

  /// The check is none if nothing is tried: the error has to be the library's.
  func testAServerStreamThatIsAskedToSendAfterItsEnd() async {
    struct NoTransport: HTTPClientInterface {
      func endpoint(
        for origin: Origin,
        on executor: (any CallExecutor)?,
        requiresHTTP2: Bool
      ) throws(ConnectError) -> any HTTPEndpoint {
        throw ConnectError(code: .unavailable)
      }
    }
    let client = ProtocolClient(
      httpClient: NoTransport(),
      config: ProtocolClientConfig(host: "http://a.example")
    )
    let method = MethodSpec<Connectrpc_Conformance_V1_ServerStreamRequest, Response>(
      path: "/a/B",
      streamType: .serverStream
    )
    let stream = client.serverStream(method, .init())
    for await _ in stream.results {}
    let failure = await self.failure { invariants in
      let request = RequestSide(stream, invariants)
      let error = await request.send(.init())
      XCTAssertEqual(error?.code, .failedPrecondition)
      XCTAssertNotNil(error?.message)
      await request.checkEnd(invariants)
    }
    XCTAssertNil(failure)
  }

  // MARK: Reports

  /// A report that comes too late for its case makes the process fail.
  func testReportsAfterTheEndOfTheCase() throws {
    let lateReports = LateReports()
    let invariants = Invariants { lateReports.add($0, of: "a case") }
    XCTAssertNoThrow(try invariants.close())
    XCTAssertEqual(lateReports.count, 0)
    invariants.report("something")
    XCTAssertEqual(lateReports.count, 1)
  }

  func testAllReportsAreTold() async {
    let failure = await self.failure { invariants in
      invariants.report("one")
      invariants.report("two")
    }
    XCTAssertEqual(failure, "broken: one; two")
  }
}
