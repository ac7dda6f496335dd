import Connect
import ConnectTesting
import LoopbackServer
import SwiftProtobuf
import Synchronization
import TestSupport
import XCTest

/// What mocks record, and how they fit what is around them.
final class MockServiceTests: XCTestCase {
  // MARK: Unscripted

  /// Calls that end before their interceptors are made are recorded with their end.
  func testCallsThatNeverBegin() async throws {
    let mock = Connect_Test_V1_TestServiceClientMock()
    mock.mockEcho.answer(.message(Connect_Test_V1_EchoResponse()))
    let late = await mock.echo(
      request: Connect_Test_V1_EchoRequest(),
      options: CallOptions(timeout: .zero)
    )
    XCTAssertEqual(late.code, .deadlineExceeded)
    let first = try await mock.mockEcho.nextCall(within: .zero)
    XCTAssertEqual(first.code, .deadlineExceeded)
    let cancelled = await Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return await mock.echo(request: Connect_Test_V1_EchoRequest()).code
    }.value
    XCTAssertEqual(cancelled, .canceled)
    let second = try await mock.mockEcho.nextCall()
    XCTAssertEqual(second.code, .canceled)
    XCTAssertEqual(second.attempts, 0)
    do {
      try await second.requests(1, within: .seconds(1000))
      XCTFail("the call has ended without a message")
    } catch is ExpectationFailure {}

    var config = ProtocolClientConfig(host: "no host")
    config.timeout = .seconds(10)
    let unusable = Connect_Test_V1_TestServiceClientMock(MockService(config: config))
    let code = await unusable.echo(request: Connect_Test_V1_EchoRequest()).code
    XCTAssertEqual(unusable.mockEcho.calls.map(\.code), [code])
  }

  func testUnscriptedMethodFailsAndNamesItself() async throws {
    let mock = Connect_Test_V1_TestServiceClientMock()
    let expected = "connect.test.v1.TestService/%@ has no scripted answer in this mock"

    let unary = await mock.echo(request: EchoRequest(), options: CallOptions())
    XCTAssertEqual(
      try unary.requireError(.unimplemented).message,
      expected.replacingOccurrences(of: "%@", with: "Echo")
    )
    let count = try await mock.count(request: CountRequest(), options: CallOptions()).results.collected()
    XCTAssertEqual(
      try count.requireError(.unimplemented).message,
      expected.replacingOccurrences(of: "%@", with: "Count")
    )
    let sum = await mock.sum(options: CallOptions()).closeAndReceive()
    XCTAssertEqual(
      try sum.requireError(.unimplemented).message,
      expected.replacingOccurrences(of: "%@", with: "Sum")
    )
    let stream = mock.converse(options: CallOptions())
    let converse = try await stream.results.collected()
    XCTAssertEqual(
      try converse.requireError(.unimplemented).message,
      expected.replacingOccurrences(of: "%@", with: "Converse")
    )
    XCTAssertEqual(mock.mockEcho.calls.map(\.code), [.unimplemented])
  }

  func testMockWithoutAnswersIsUnscripted() async throws {
    let mock = Connect_Test_V1_TestServiceClientMock()
    mock.mockEcho.answer(.message(EchoResponse()))
    mock.mockEcho.answer()
    let response = await mock.echo(request: EchoRequest(), options: CallOptions())
    try response.requireError(.unimplemented)
  }

  // MARK: Delays, deadlines, cancellation

  func testDelay() async throws {
    let service = MockService()
    let mock = Connect_Test_V1_TestServiceClientMock(service)
    mock.mockEcho.answer(.message(EchoResponse(), after: .milliseconds(20)))
    let start = service.transport.executor.now
    let response = await mock.echo(request: EchoRequest(), options: CallOptions())
    XCTAssertEqual(response.code, .ok)
    XCTAssertGreaterThanOrEqual(service.transport.executor.now - start, .milliseconds(20))
  }

  func testDeadlineThatPassesDuringADelay() async throws {
    let mock = Connect_Test_V1_TestServiceClientMock()
    mock.mockEcho.answer(.message(EchoResponse(), after: .seconds(60)))
    let response = await mock.echo(
      request: EchoRequest(),
      options: CallOptions(timeout: .milliseconds(10))
    )
    try response.requireError(.deadlineExceeded)
    XCTAssertEqual(mock.mockEcho.calls.first?.code, .deadlineExceeded)
  }

  func testCancellationIsRecorded() async throws {
    let mock = Connect_Test_V1_TestServiceClientMock()
    mock.mockEcho.answer(.message(EchoResponse(), after: .seconds(60)))

    let task = Task { await mock.echo(request: .with { $0.payload.text = "a" }, options: CallOptions()) }
    let call = try await mock.mockEcho.nextCall()
    XCTAssertEqual(call.request?.payload.text, "a")
    XCTAssertNil(call.code)
    task.cancel()

    let code = try await call.end()
    XCTAssertEqual(code, .canceled)
    let response = await task.value
    try response.requireError(.canceled)
  }

  func testDroppedStreamIsRecordedAsCancelled() async throws {
    let mock = Connect_Test_V1_TestServiceClientMock()
    mock.mockConverse.answer { requests, _, context in
      try await context.sendHeaders()
      for try await _ in requests {}
    }
    do {
      let stream = mock.converse(options: CallOptions())
      try await stream.send(ConverseRequest())
    }
    let code = try await mock.mockConverse.nextCall().end()
    XCTAssertEqual(code, .canceled)
  }

  // MARK: Waiting

  func testNextCallGivesEachCallOnce() async throws {
    let mock = Connect_Test_V1_TestServiceClientMock()
    mock.mockEcho.answer(.message(EchoResponse()))
    async let later = mock.mockEcho.nextCall()
    for text in ["a", "b"] { _ = try await mock.echo(.with { $0.payload.text = text }) }
    let first = try await later
    let second = try await mock.mockEcho.nextCall()
    XCTAssertEqual([first, second].map(\.request?.payload.text), ["a", "b"])
  }

  func testWaitingHasABound() async throws {
    let mock = Connect_Test_V1_TestServiceClientMock()
    await Self.assertFails(
      "/connect.test.v1.TestService/Echo was not called for the first time within 0.01 seconds"
    ) {
      try await mock.mockEcho.nextCall(within: .milliseconds(10))
    }
    // A call that is missed does not count.
    mock.mockConverse.answer { requests, _, _ in for try await _ in requests {} }
    let stream = mock.converse(options: CallOptions())
    let call = try await mock.mockConverse.nextCall()
    await Self.assertFails("/connect.test.v1.TestService/Converse did not end within 0.01 seconds") {
      try await call.end(within: .milliseconds(10))
    }
    await Self.assertFails(
      "/connect.test.v1.TestService/Converse sent 0 messages within 0.01 seconds, expected were 2"
    ) {
      try await call.requests(2, within: .milliseconds(10))
    }
    stream.cancel()
    mock.mockEcho.answer(.message(EchoResponse()))
    _ = try await mock.echo(EchoRequest())
    try await mock.mockEcho.nextCall()
  }

  private static func assertFails<Value>(
    _ description: String,
    line: UInt = #line,
    _ work: () async throws -> Value
  ) async {
    do {
      _ = try await work()
      XCTFail("did not fail", line: line)
    } catch {
      XCTAssertEqual("\(error)", description, line: line)
    }
  }

  // MARK: The client's configuration

  func testProtocolsAndCodecs() async throws {
    for setting in WireSetting.inMemory {
      let config = ProtocolClientConfig(
        host: "http://mock/base",
        networkProtocol: setting.networkProtocol,
        codec: setting.codec,
        compression: Compression(
          requests: setting.isCompressed ? GzipCompressionPool() : nil,
          minimumRequestBytes: 0
        )
      )
      let mock = Connect_Test_V1_TestServiceClientMock(MockService(config: config))
      mock.mockEcho.answer { request, _ in .with { $0.payload = request.payload } }
      let answer = try await mock.echo(.with { $0.payload.text = "a" })
      XCTAssertEqual(answer.payload.text, "a", "\(setting)")
    }
  }

  func testInterceptorsRunAndRetriesAreAttempts() async throws {
    struct Retrying: Interceptor {
      func unaryFunction() -> UnaryFunction {
        UnaryFunction(
          requestFunction: { request, proceed in
            var request = request
            request.headers["authorization"] = ["Bearer t"]
            proceed(.success(request))
          },
          responseFunction: { response, proceed in
            if response.code == .unavailable { proceed.retry() } else { proceed(response) }
          }
        )
      }
    }
    let config = ProtocolClientConfig(host: "http://mock", interceptors: [{ _ in Retrying() }])
    let mock = Connect_Test_V1_TestServiceClientMock(MockService(config: config))
    mock.mockEcho.answer(
      .failure(ConnectError(code: .unavailable)),
      .failure(ConnectError(code: .unavailable)),
      .message(.with { $0.payload.text = "third time" })
    )

    let answer = try await mock.echo(.with { $0.payload.text = "a" })

    XCTAssertEqual(answer.payload.text, "third time")
    let call = try XCTUnwrap(mock.mockEcho.calls.first)
    XCTAssertEqual(mock.mockEcho.calls.count, 1)
    XCTAssertEqual(call.attempts, 3)
    XCTAssertEqual(call.requests.count, 1)
    XCTAssertEqual(call.headers["authorization"], ["Bearer t"])
    XCTAssertEqual(call.code, .ok)
  }

  func testCallThatAnInterceptorFailsIsRecorded() async throws {
    struct Refusing: Interceptor {
      func unaryMessageFunction<Input, Output>(
        _ method: MethodSpec<Input, Output>
      ) -> UnaryMessageFunction<Input, Output> {
        UnaryMessageFunction(requestFunction: { _, proceed in
          proceed(.failure(ConnectError(code: .unauthenticated)))
        })
      }
    }
    let mock = Connect_Test_V1_TestServiceClientMock()
    let options = CallOptions(interceptors: [{ _ in Refusing() }])
    let response = await mock.echo(request: EchoRequest(), options: options)
    try response.requireError(.unauthenticated)
    let call = try await mock.mockEcho.nextCall()
    XCTAssertEqual(call.attempts, 0)
    XCTAssertNil(call.request)
    XCTAssertEqual(call.code, .unauthenticated)
    XCTAssertEqual(call.options.interceptors.count, 1)
  }

  func testFaultsOfTheTransport() async throws {
    let service = MockService()
    let mock = Connect_Test_V1_TestServiceClientMock(service)
    mock.mockEcho.answer(.message(.with { $0.payload.text = "a" }))
    service.transport.inject(.reset(afterBytes: 2), at: TestMethods.echo.path, calls: 1)
    let broken = await mock.echo(request: EchoRequest(), options: CallOptions())
    try broken.requireError(.internalError)
    let whole = await mock.echo(request: EchoRequest(), options: CallOptions())
    XCTAssertEqual(whole.code, .ok)
  }

  func testClientWithoutGeneratedCode() async throws {
    let service = MockService()
    let echo = service.unary(TestMethods.echo)
    echo.answer(.message(.with { $0.payload.text = "a" }))

    let response = await service.client.unary(
      TestMethods.echo,
      .with { $0.payload.text = "b" },
      options: CallOptions(headers: ["x-a": ["1"]])
    )

    XCTAssertEqual(response.message?.payload.text, "a")
    let call = try await echo.nextCall()
    XCTAssertEqual(call.request?.payload.text, "b")
    XCTAssertEqual(call.options.headers, ["x-a": ["1"]])
    XCTAssertEqual(call.code, .ok)
  }

  // MARK: Threads

  func testManyThreads() async throws {
    let mock = Connect_Test_V1_TestServiceClientMock()
    mock.mockEcho.answer { request, _ in .with { $0.payload = request.payload } }
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<200 {
        group.addTask {
          let answer = try? await mock.echo(.with { $0.payload.big = Int64(number) })
          XCTAssertEqual(answer?.payload.big, Int64(number))
        }
        group.addTask {
          let call = try? await mock.mockEcho.nextCall()
          XCTAssertNotNil(call?.request)
          _ = mock.mockEcho.calls.count
        }
      }
    }
    let numbers = mock.mockEcho.calls.compactMap(\.request?.payload.big).sorted()
    XCTAssertEqual(numbers, Array(0..<200))
  }
}
