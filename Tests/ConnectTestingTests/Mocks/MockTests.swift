import Connect
import ConnectTesting
import LoopbackServer
import SwiftProtobuf
import Synchronization
import XCTest

/// Mocks of each stream type, called as generated code calls them.
final class MockTests: XCTestCase {
  // MARK: Unary

  func testUnaryAnswersWithValue() async throws {
    let mock = Connect_Test_V1_TestServiceClientMock()
    mock.mockEcho.answer(
      .message(
        .with { $0.payload.text = "hello" },
        headers: ["x-served-by": ["mock"]],
        trailers: ["x-cost": ["3"]]
      )
    )

    let options = CallOptions(headers: ["x-id": ["42"]], timeout: .seconds(9))
    let response = await mock.echo(request: .with { $0.payload.text = "hi" }, options: options)

    XCTAssertEqual(response.message?.payload.text, "hello")
    XCTAssertEqual(response.headers["x-served-by"], ["mock"])
    XCTAssertEqual(response.trailers["x-cost"], ["3"])
    let call = try XCTUnwrap(mock.mockEcho.calls.first)
    XCTAssertEqual(mock.mockEcho.calls.count, 1)
    XCTAssertEqual(call.request?.payload.text, "hi")
    XCTAssertEqual(call.options.timeout, .seconds(9))
    XCTAssertEqual(call.options.headers, ["x-id": ["42"]])
    XCTAssertEqual(call.headers["x-id"], ["42"])
    XCTAssertEqual(call.headers["content-type"], ["application/proto"])
    XCTAssertEqual(call.code, .ok)
    XCTAssertNil(call.error)
    XCTAssertEqual(call.attempts, 1)
    XCTAssertEqual(call.method, TestMethods.echo.info)
  }

  func testUnaryAnswersWithFunction() async throws {
    let mock = Connect_Test_V1_TestServiceClientMock()
    mock.mockEcho.answer { request, context in
      context.responseHeaders["x-method"] = [String(context.method.name)]
      guard !request.payload.text.isEmpty else {
        throw ConnectError(code: .invalidArgument, message: "no text")
      }
      return .with { $0.payload.text = request.payload.text.uppercased() }
    }

    let answer = try await mock.echo(.with { $0.payload.text = "abc" })
    XCTAssertEqual(answer.payload.text, "ABC")
    let response = await mock.echo(request: EchoRequest(), options: CallOptions())
    XCTAssertEqual(try response.requireError(.invalidArgument).message, "no text")
    XCTAssertEqual(mock.mockEcho.calls.map(\.code), [.ok, .invalidArgument])
    XCTAssertEqual(mock.mockEcho.calls.last?.error?.message, "no text")
  }

  func testAnswersInOrderAndThenTheLast() async throws {
    let mock = Connect_Test_V1_TestServiceClientMock()
    mock.mockEcho.answer(
      .failure(ConnectError(code: .unavailable)),
      .message(.with { $0.payload.text = "one" }),
      .message(.with { $0.payload.text = "two" })
    )
    var texts: [String] = []
    for _ in 0..<4 {
      let response = await mock.echo(request: EchoRequest(), options: CallOptions())
      texts.append(response.message?.payload.text ?? "\(response.code)")
    }
    XCTAssertEqual(texts, ["unavailable", "one", "two", "two"])

    mock.mockEcho.answer(.message(.with { $0.payload.text = "new" }))
    let answer = try await mock.echo(EchoRequest())
    XCTAssertEqual(answer.payload.text, "new")
  }

  func testUnaryCallback() async throws {
    let mock = Connect_Test_V1_TestServiceClientMock()
    mock.mockEcho.answer(.message(.with { $0.payload.text = "hello" }))
    let results = CallbackResults<ResponseMessage<EchoResponse>>()

    mock.echo(request: .with { $0.payload.text = "hi" }, options: CallOptions()) { results.receive($0) }

    let response = try await results.next(1)[0]
    XCTAssertEqual(try response.requireMessage().payload.text, "hello")
    let call = try await mock.mockEcho.nextCall()
    XCTAssertEqual(call.request?.payload.text, "hi")
    try await call.end()
    XCTAssertEqual(call.code, .ok)
  }

  // MARK: Server stream

  func testServerStreamAnswersWithValues() async throws {
    let mock = Connect_Test_V1_TestServiceClientMock()
    let failure = ConnectError(code: .dataLoss, message: "no more", metadata: ["x-at": ["2"]])
    mock.mockCount.answer(
      .messages(
        (1...2).map { number in .with { $0.number = number } },
        error: failure,
        headers: ["x-a": ["1"]]
      ),
      .messages([.with { $0.number = 7 }], trailers: ["x-b": ["2"]])
    )

    let first = try await mock.count(request: .with { $0.from = 5 }, options: CallOptions()).results
      .collected()
    XCTAssertEqual(first.messages.map(\.number), [1, 2])
    XCTAssertEqual(first.headers["x-a"], ["1"])
    XCTAssertEqual(try first.requireError(.dataLoss).metadata["x-at"], ["2"])
    let second = try await mock.count(request: CountRequest(), options: CallOptions()).results.collected()
    XCTAssertEqual(try second.requireMessages().map(\.number), [7])
    XCTAssertEqual(second.trailers["x-b"], ["2"])
    XCTAssertEqual(mock.mockCount.calls.map(\.request?.from), [5, 0])
    XCTAssertEqual(mock.mockCount.calls.map(\.code), [.dataLoss, .ok])
  }

  func testServerStreamInItsShortForm() async throws {
    let mock = Connect_Test_V1_TestServiceClientMock()
    mock.mockCount.answer(
      .messages(
        (1...2).map { number in .with { $0.number = number } },
        error: ConnectError(code: .dataLoss, message: "no more")
      ),
      .messages([.with { $0.number = 7 }])
    )
    let service: any Connect_Test_V1_TestServiceClientInterface = mock

    var numbers: [Int64] = []
    do {
      for try await message in service.count(.with { $0.from = 5 }) { numbers.append(message.number) }
      XCTFail("the stream ended well")
    } catch let error as ConnectError {
      XCTAssertEqual(error.code, .dataLoss)
    }
    XCTAssertEqual(numbers, [1, 2])
    let options = CallOptions(headers: ["x-id": ["42"]])
    for try await message in mock.count(CountRequest(), options: options) { numbers.append(message.number) }
    XCTAssertEqual(numbers, [1, 2, 7])
    XCTAssertEqual(mock.mockCount.calls.map(\.request?.from), [5, 0])
    XCTAssertEqual(mock.mockCount.calls.last?.headers["x-id"], ["42"])
  }

  func testServerStreamAnswersWithFunctionAndCallbacks() async throws {
    let mock = Connect_Test_V1_TestServiceClientMock()
    mock.mockCount.answer { request, responses, context in
      try await context.sendHeaders()
      for number in 0..<3 { try await responses.send(.with { $0.number = request.from + Int64(number) }) }
    }
    let results = CallbackResults<StreamResult<CountResponse>>()

    mock.count(request: .with { $0.from = 5 }, options: CallOptions(), demand: .max) { results.receive($0) }

    let received = try await results.next(5)
    XCTAssertEqual(received.compactMap { $0.message?.number }, [5, 6, 7])
    guard case .complete(code: .ok, error: nil, _) = received[4] else { return XCTFail("\(received[4])") }
  }

  // MARK: Client stream

  func testClientStreamAnswersWithValueOnceTheRequestIsWhole() async throws {
    let mock = Connect_Test_V1_TestServiceClientMock()
    mock.mockSum.answer(
      .message(.with { $0.sum = 6 }),
      .failure(ConnectError(code: .outOfRange, message: "too much"))
    )
    for expected in [Code.ok, .outOfRange] {
      let stream = mock.sum(options: CallOptions())
      for number: Int64 in 1...3 { try await stream.send(.with { $0.number = number }) }
      let response = await stream.closeAndReceive()
      XCTAssertEqual(response.code, expected)
      if expected == .ok { XCTAssertEqual(response.message?.sum, 6) }
      let call = try await mock.mockSum.nextCall()
      XCTAssertEqual(call.requests.map(\.number), [1, 2, 3])
      let code = try await call.end()
      XCTAssertEqual(code, expected)
    }
  }

  func testClientStreamAnswersWithFunctionAndCallbacks() async throws {
    let mock = Connect_Test_V1_TestServiceClientMock()
    mock.mockSum.answer { requests, _ in
      var sum: Int64 = 0
      for try await request in requests { sum += request.number }
      return .with { [sum] in $0.sum = sum }
    }
    let results = CallbackResults<ResponseMessage<SumResponse>>()

    let handle = mock.sum(options: CallOptions()) { results.receive($0) }
    handle.send(.with { $0.number = 4 })
    let call = try await mock.mockSum.nextCall()
    try await call.requests(1)
    XCTAssertNil(call.code)
    handle.send(.with { $0.number = 5 })
    handle.finish()

    let response = try await results.next(1)[0]
    XCTAssertEqual(try response.requireMessage().sum, 9)
    XCTAssertEqual(call.requests.map(\.number), [4, 5])
  }

  // MARK: Bidirectional stream

  func testBidirectionalStreamAnswersWithValuesAtOnce() async throws {
    let mock = Connect_Test_V1_TestServiceClientMock()
    mock.mockConverse.answer(.messages((0..<2).map { index in .with { $0.index = index } }))

    let stream = mock.converse(options: CallOptions())
    var messages = stream.messages.makeAsyncIterator()
    let first = try await messages.next()
    let second = try await messages.next()
    XCTAssertEqual([first?.index, second?.index], [0, 1])
    try await stream.send(.with { $0.payload.text = "late" })
    stream.finish()
    let end = try await messages.next()

    XCTAssertNil(end)
    XCTAssertEqual(mock.mockConverse.calls.first?.requests.map(\.payload.text), ["late"])
    XCTAssertEqual(mock.mockConverse.calls.first?.code, .ok)
  }

  func testBidirectionalStreamFailsAtOnce() async throws {
    let mock = Connect_Test_V1_TestServiceClientMock()
    mock.mockConverse.answer(.messages([ConverseResponse()], error: ConnectError(code: .aborted)))
    let collected = try await mock.converse(options: CallOptions()).results.collected()
    try collected.requireError(.aborted)
    XCTAssertEqual(collected.messages.count, 1)
  }

  func testBidirectionalStreamAnswersWithFunctionAndCallbacks() async throws {
    let mock = Connect_Test_V1_TestServiceClientMock()
    mock.mockConverse.answer { requests, responses, _ in
      for try await request in requests {
        try await responses.send(.with { $0.payload.text = "re: " + request.payload.text })
      }
    }
    let results = CallbackResults<StreamResult<ConverseResponse>>()

    let handle = mock.converse(options: CallOptions(), demand: 1) { results.receive($0) }
    handle.send(.with { $0.payload.text = "a" })
    handle.request(1)
    let received = try await results.next(2)
    XCTAssertEqual(received.compactMap { $0.message?.payload.text }, ["re: a"])
    handle.cancel()
    _ = try await results.next(1)

    let call = try await mock.mockConverse.nextCall()
    let code = try await call.end()
    XCTAssertEqual(code, .canceled)
  }
}
