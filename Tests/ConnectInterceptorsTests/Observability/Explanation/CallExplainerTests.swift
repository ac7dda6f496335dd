import Connect
import ConnectTesting
import LoopbackServer
import NIOCore
import SwiftProtobuf
import XCTest

@testable import ConnectInterceptors

final class CallExplainerTests: XCTestCase {
  private func client(
    of service: ObservedService,
    _ explainer: CallExplainer,
    _ interceptors: any Interceptor...
  ) -> ProtocolClient {
    let arranged = Arranged(explainer.arrange(interceptors))
    return ProtocolClient(
      httpClient: service.transport,
      config: ProtocolClientConfig(
        host: "http://service.test:8080",
        interceptors: arranged.values.indices.map { index in { _ in arranged.values[index] } }
      )
    )
  }

  func testWhereTheTimeGoes() async throws {
    let service = ObservedService()
    let explainer = CallExplainer(clock: service.executor.clock)
    let clock = service.executor.clock
    let client = self.client(
      of: service,
      explainer,
      Delay(executor: service.executor, request: .seconds(2), response: .seconds(3)),
      AsyncDelay(clock: clock),
      RetryWhenUnavailable()
    )
    try await service.echo("flaky", by: client)
    service.executor.runUntilIdle()
    let explanation = explainer.explanation
    XCTAssertEqual(explanation.method, "connect.test.v1.TestService/Echo")
    XCTAssertEqual(explanation.server, "http://service.test:8080")
    XCTAssertEqual(explanation.code, .ok)
    // 2 (for each attempt) and 3 of the first, 5 and 7 of the second, two attempts of 1, and 2 between them.
    XCTAssertEqual(explanation.duration, .seconds(23))
    XCTAssertEqual(explanation.interceptors.map(\.name), ["Delay", "AsyncDelay", "RetryWhenUnavailable"])
    XCTAssertEqual(explanation.interceptors.map(\.request), [.seconds(4), .seconds(5), .zero])
    XCTAssertEqual(explanation.interceptors.map(\.response), [.seconds(3), .seconds(7), .zero])
    XCTAssertEqual(explanation.encoding, .zero)
    XCTAssertEqual(explanation.decoding, .zero)
    XCTAssertEqual(explanation.attempts.map(\.start), [.seconds(7), .seconds(12)])
    XCTAssertEqual(explanation.attempts.map(\.code), [.unavailable, .ok])
    XCTAssertEqual(explanation.attempts.map { $0.metrics?.httpStatus }, [503, 200])
    XCTAssertEqual(explanation.attempts.map { $0.metrics?.duration }, [.seconds(1), .seconds(1)])
    XCTAssertEqual(explanation.attempts.map(\.requestMessageBytes), [9, 9])
    XCTAssertEqual(explanation.attempts.map(\.responseMessageBytes), [0, 9])
  }

  func testText() async throws {
    let service = ObservedService()
    let explainer = CallExplainer(clock: service.executor.clock)
    let client = self.client(
      of: service,
      explainer,
      Delay(executor: service.executor, request: .milliseconds(5), response: .microseconds(250)),
      RetryWhenUnavailable()
    )
    try await service.echo("flaky", by: client)
    let lines = explainer.explanation.description.split(separator: "\n").map(String.init)
    XCTAssertEqual(
      lines.prefix(5),
      [
        "connect.test.v1.TestService/Echo at http://service.test:8080: ok after 4010.250 ms",
        "  Delay: 10.000 ms down, 0.250 ms up",
        "  RetryWhenUnavailable: 0.000 ms down, 0.000 ms up",
        "  encoding 0.000 ms, decoding 0.000 ms",
        "  attempt 1, after 5.000 ms: unavailable",
      ]
    )
    XCTAssertTrue(lines.contains("    1000.000 ms until the response's head, HTTP 503"), "\(lines)")
    XCTAssertTrue(lines.contains("  attempt 2, after 3010.000 ms: ok"), "\(lines)")
    XCTAssertTrue(lines.contains("    sent 9 bytes for 9 of messages, received 9 for 9"), "\(lines)")
  }

  /// What an interceptor holds up counts, even if it never proceeds.
  func testACallThatEndsInAnInterceptor() async throws {
    let service = ObservedService()
    let explainer = CallExplainer(clock: service.executor.clock)
    let client = self.client(
      of: service,
      explainer,
      Delay(executor: service.executor, request: .seconds(100), response: .zero)
    )
    try await service.echo("hello", by: client, options: CallOptions(timeout: .seconds(4)))
    let explanation = explainer.explanation
    XCTAssertEqual(explanation.code, .deadlineExceeded)
    XCTAssertEqual(explanation.duration, .seconds(4))
    XCTAssertEqual(explanation.interceptors.map(\.request), [.seconds(4)])
    XCTAssertTrue(explanation.attempts.isEmpty)
  }

  func testACallUnderWay() throws {
    let service = ObservedService()
    let explainer = CallExplainer(clock: service.executor.clock)
    let client = self.client(of: service, explainer)
    client.unary(TestMethods.echo, Connect_Test_V1_EchoRequest()) { _ in }
    service.executor.runUntilIdle()
    service.executor.advance(by: .milliseconds(400))
    let explanation = explainer.explanation
    XCTAssertNil(explanation.code)
    XCTAssertEqual(explanation.duration, .milliseconds(400))
    XCTAssertEqual(explanation.attempts.count, 1)
    XCTAssertNil(explanation.attempts[0].metrics)
    XCTAssertTrue(explanation.description.contains("not over after 400.000 ms"))
  }

  func testStreams() async throws {
    let service = ObservedService()
    let explainer = CallExplainer(clock: service.executor.clock)
    let client = self.client(
      of: service,
      explainer,
      Delay(executor: service.executor, request: .seconds(2), response: .seconds(3)),
      AsyncDelay(clock: service.executor.clock)
    )
    try await service.converse(["a", "b"], by: client)
    service.executor.runUntilIdle()
    let explanation = explainer.explanation
    XCTAssertEqual(explanation.code, .ok)
    XCTAssertEqual(explanation.interceptors.map(\.request), [.seconds(2), .seconds(5)])
    XCTAssertEqual(explanation.interceptors.map(\.response), [.seconds(3), .seconds(7)])
    XCTAssertEqual(explanation.attempts.map(\.code), [.ok])
    XCTAssertEqual(explanation.attempts.map(\.requestMessageBytes), [10])
    XCTAssertEqual(explanation.attempts.map(\.responseMessageBytes), [10])
  }

  /// The verbs of hooks pass through the stopwatch: failing, answering, retrying, dropping.
  func testAStopwatchChangesNothing() async throws {
    for name in ["fail", "answer", "drop"] {
      var outcomes: [String] = []
      for isExplained in [false, true] {
        let service = ObservedService()
        let base: any Interceptor = Verbs(name: name)
        let arranged = Arranged(isExplained ? CallExplainer().arrange([base]) : [base])
        let client = ProtocolClient(
          httpClient: service.transport,
          config: ProtocolClientConfig(
            host: "http://service.test:8080",
            interceptors: arranged.values.indices.map { index in { _ in arranged.values[index] } }
          )
        )
        let response = try await service.echo("hello", by: client)
        let stream = try await service.converse(["a", "b", "c"], by: client)
        outcomes.append(
          "\(response.code) \(response.message?.payload.text ?? "") "
            + "\(stream.code) \(stream.messages.map(\.payload.text))"
        )
      }
      XCTAssertEqual(outcomes[0], outcomes[1])
    }
  }
}

/// The interceptors of one call, made before it.
private final class Arranged: @unchecked Sendable {
  let values: [any Interceptor]

  init(_ values: [any Interceptor]) { self.values = values }
}

private struct Delay: Interceptor {
  let executor: VirtualExecutor
  let request: Duration
  let response: Duration

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      requestFunction: { request, proceed in
        _ = self.executor.schedule(after: self.request) { proceed(.success(request)) }
      },
      responseFunction: { response, proceed in
        _ = self.executor.schedule(after: self.response) { proceed(response) }
      }
    )
  }

  func streamMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> StreamMessageFunction<Input, Output> {
    StreamMessageFunction(
      requestFunction: { request, proceed in
        _ = self.executor.schedule(after: self.request) { proceed(.success(request)) }
      },
      streamResultFunction: { result, proceed in
        guard case .headers = result else { return proceed(result) }
        _ = self.executor.schedule(after: self.response) { proceed(result) }
      }
    )
  }
}

private struct AsyncDelay: AsyncUnaryInterceptor, AsyncStreamInterceptor {
  let clock: VirtualClock

  func interceptUnary<Input: Sendable, Output: Sendable>(
    _ request: HTTPRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: UnaryNext<Input, Output>
  ) async throws -> ResponseMessage<Output> {
    try await self.clock.sleep(for: .seconds(5))
    let response = try await next(request)
    try await self.clock.sleep(for: .seconds(7))
    return response
  }

  func interceptStream<Input: Sendable, Output: Sendable>(
    _ request: StreamRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: StreamNext<Input, Output>
  ) async throws -> StreamResponse<Output> {
    try await self.clock.sleep(for: .seconds(5))
    let response = try await next(request)
    try await self.clock.sleep(for: .seconds(7))
    return response
  }
}

private struct Verbs: Interceptor {
  let name: String

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(requestFunction: { request, proceed in
      switch self.name {
      case "fail": proceed(.failure(ConnectError(code: .aborted)))
      case "answer": proceed.answer(HTTPResponse())
      default: proceed(.success(request))
      }
    })
  }

  func streamFunction() -> StreamFunction {
    StreamFunction(
      requestFunction: { request, proceed in
        switch self.name {
        case "fail": proceed(.failure(ConnectError(code: .aborted)))
        case "answer": proceed.answer(StreamAnswer(messages: []))
        default: proceed(.success(request))
        }
      },
      requestDataFunction: { bytes, proceed in
        if String(buffer: bytes).contains("b") { proceed.drop() } else { proceed(bytes) }
      },
      streamResultFunction: { result, proceed in
        if case .message(let bytes) = result, String(buffer: bytes).contains("c") {
          proceed.drop()
        } else {
          proceed(result)
        }
      }
    )
  }
}
