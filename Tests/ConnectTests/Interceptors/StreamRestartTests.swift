import Connect
import ConnectTesting
import NIOCore
import XCTest

/// Retries of streams from the start of the whole chain.
final class StreamRestartTests: XCTestCase {
  private enum Form: CaseIterable {
    case call, message, byte, asyncMessage, asyncByte

    func factory(after delay: Duration = .zero) -> InterceptorFactory {
      { _ in
        var interceptor = TestInterceptor()
        switch self {
        case .call:
          interceptor.call.retryFunction = { $0.error == nil ? nil : RetryRequest(after: delay) }
        case .message:
          interceptor.streamMessages.streamResultFunction = { result, proceed in
            if case .complete(_, .some, _) = result {
              proceed.retry(after: delay, from: .start)
            } else {
              proceed(result)
            }
          }
        case .byte:
          interceptor.streamBytes.streamResultFunction = { result, proceed in
            if case .complete(_, .some, _) = result {
              proceed.retry(after: delay, from: .start)
            } else {
              proceed(result)
            }
          }
        case .asyncMessage:
          return TestAsyncInterceptor(stream: { request, next in
            try await next(request).mapErrors { _ in throw RetryRequest(after: delay) }
          })
        case .asyncByte:
          return ByteRetrying(delay: delay)
        }
        return interceptor
      }
    }
  }

  private struct ByteRetrying: AsyncStreamByteInterceptor {
    let delay: Duration

    func interceptStreamBytes(
      _ request: StreamRequest<ByteBuffer>,
      method: MethodInfo,
      next: StreamNext<ByteBuffer, ByteBuffer>
    ) async throws -> StreamResponse<ByteBuffer> {
      try await next(request).mapErrors { _ in throw RetryRequest(after: delay) }
    }
  }

  private static let failing: ScriptedTransport.Script = { stream in
    stream.onFinish = { $0.fail(ConnectError(code: .unavailable, message: "\($0.sentMessages.count)")) }
  }

  func testMessagesPassTheWholeChainAgain() async {
    for form in Form.allCases {
      let probe = InterceptorProbe()
      let transport = ScriptedTransport.replying([Self.failing, Self.failing, StreamChainTests.echo])
      let client = ProtocolClient.scripted(
        transport,
        interceptors: [probe.factory("A", levels: [.call, .message]), form.factory()]
      )
      let results = await client.results()
      XCTAssertEqual(results, ["headers", "a", "b", "end ok"], "\(form)")
      XCTAssertEqual(
        transport.streams.map(\.sentMessages),
        Array(repeating: ["\"a\"", "\"b\""], count: 3),
        "\(form)"
      )
      XCTAssertEqual(probe.events.outline.count { $0 == "A call request" }, 3, "\(form)")
      XCTAssertEqual(probe.events.count { $0.short == "A > a" }, 3, "\(form)")
      let outer = form == .call ? 3 : 1
      XCTAssertEqual(probe.events.count { $0.short.hasPrefix("A < end") }, outer, "\(form)")
      XCTAssertEqual(probe.events.outline.count { $0.hasPrefix("A call outcome") }, 1, "\(form)")
    }
  }

  func testWithoutAnyOtherInterceptor() async {
    for form in Form.allCases {
      let transport = ScriptedTransport.replying([Self.failing, StreamChainTests.echo])
      let client = ProtocolClient.scripted(transport, interceptors: [form.factory()])
      let results = await client.results()
      XCTAssertEqual(results, ["headers", "a", "b", "end ok"], "\(form)")
    }
  }

  func testRefusedAfterAValueWasShown() async {
    for form in Form.allCases {
      let transport = ScriptedTransport { stream in
        stream.respondStream()
        stream.endStream(.unavailable)
      }
      let client = ProtocolClient.scripted(transport, interceptors: [form.factory()])
      let results = await client.results()
      XCTAssertEqual(results, ["headers", "end unavailable"], "\(form)")
      XCTAssertEqual(transport.streams.count, 1, "\(form)")
    }
  }

  func testRefusedWhenMoreWasSentThanIsKept() async {
    for form in Form.allCases {
      for (size, attempts) in [(3, 4), (5, 1)] {
        let transport = ScriptedTransport(Self.failing)
        let client = ProtocolClient.scripted(transport, interceptors: [form.factory()]) {
          $0.retries.maximumReplayBytes = 10
        }
        let message = Text(String(repeating: "x", count: size - 2))
        let results = await client.results(sending: [message, message, message])
        XCTAssertEqual(results, ["end unavailable"], "\(form), size \(size)")
        XCTAssertEqual(transport.streams.count, attempts, "\(form), size \(size)")
      }
    }
  }

  func testDelayHoldsBackMessagesAndEnd() async throws {
    for form in Form.allCases {
      let transport = ScriptedTransport.replying([
        { $0.fail(ConnectError(code: .unavailable)) }, StreamChainTests.echo,
      ])
      let client = ProtocolClient.scripted(
        transport,
        interceptors: [form.factory(after: .seconds(1))],
        timeout: .seconds(10)
      )
      let results = Box<[String]>([])
      let ended = Signal<Void>()
      let handle = client.bidirectionalStream(.bidirectional) { result in
        results.value = results.value + [result.short]
        if case .complete = result { ended.fire() }
      }
      for _ in 0..<5000 where !transport.virtualExecutor.scheduled.contains(.seconds(1)) {
        transport.virtualExecutor.runUntilIdle()
        try await Task.sleep(for: .milliseconds(1))
      }
      handle.send("a")
      handle.finish()
      transport.virtualExecutor.runUntilIdle()
      XCTAssertEqual(transport.streams.count, 1, "\(form)")
      transport.virtualExecutor.advance(by: .seconds(1))
      await ended.wait()
      XCTAssertEqual(transport.streams.count, 2, "\(form)")
      XCTAssertEqual(results.value, ["headers", "a", "end ok"], "\(form)")
    }
  }

  /// A refused retry passes on how the last attempt ended.
  func testARefusedRetryKeepsTheEnd() async throws {
    for form in Form.allCases {
      let transport = ScriptedTransport { stream in
        stream.respondStream()
        stream.endStream(.unavailable, metadata: #"{"x-why":["maintenance"]}"#)
      }
      let client = ProtocolClient.scripted(transport, interceptors: [form.factory()])
      let stream = client.bidirectionalStream(.bidirectional)
      stream.finish()
      var trailers = Headers()
      for await result in stream.results { if case .complete(_, _, let last) = result { trailers = last } }
      XCTAssertEqual(trailers["x-why"], ["maintenance"], "\(form)")
    }
  }

  /// The caller sends on while the first messages are sent again.
  func testMessagesDuringARetry() async throws {
    for form in Form.allCases {
      let transport = ScriptedTransport.replying([
        { stream in
          stream.onWrite = { stream, _ in
            if stream.sentMessages.count == 2 { stream.fail(ConnectError(code: .unavailable)) }
          }
        }, StreamChainTests.echo,
      ])
      let client = ProtocolClient.scripted(transport, interceptors: [form.factory()])
      let stream = client.bidirectionalStream(.bidirectional)
      for message in ["a", "b", "c", "d"] as [Text] { try await stream.send(message) }
      stream.finish()
      var results: [String] = []
      for await result in stream.results { results.append(result.short) }
      XCTAssertEqual(results, ["headers", "a", "b", "c", "d", "end ok"], "\(form)")
    }
  }

  func testAStreamThatACallHookHasFailedBeforeItStarted() async {
    let transport = ScriptedTransport(StreamChainTests.echo)
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        Form.call.factory(),
        { _ in
          var isFirst = true
          var interceptor = TestInterceptor()
          interceptor.call.requestFunction = { _ in
            defer { isFirst = false }
            if isFirst { throw ConnectError(code: .aborted) }
          }
          return interceptor
        },
      ]
    )
    let results = await client.results()
    XCTAssertEqual(results, ["headers", "a", "b", "end ok"])
    XCTAssertEqual(transport.streams.count, 1)
  }
}
