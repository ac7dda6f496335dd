import Connect
import ConnectTesting
import NIOCore
import XCTest

/// Retries of streams: request messages are sent again.
final class StreamRetryTests: XCTestCase {
  private static let failing: ScriptedTransport.Script = { stream in
    stream.onFinish = { $0.fail(ConnectError(code: .unavailable, message: "\($0.sentMessages.count)")) }
  }

  private static func retrying(
    bytes: Bool = false,
    after delay: Duration = .zero,
    holdingHeaders: Bool = false
  ) -> InterceptorFactory {
    if bytes {
      return TestInterceptor.make { interceptor in
        interceptor.streamBytes.streamResultFunction = { result, proceed in
          if case .complete(_, .some, _) = result { proceed.retry(after: delay) } else { proceed(result) }
        }
      }
    }
    return { _ in
      var held: (@Sendable () -> Void)?
      var interceptor = TestInterceptor()
      interceptor.streamMessages.streamResultFunction = { result, proceed in
        switch result {
        case .headers where holdingHeaders:
          held = { proceed(result) }
        case .complete(_, .some, _):
          held = nil
          proceed.retry(after: delay)
        default:
          held?()
          held = nil
          proceed(result)
        }
      }
      return interceptor
    }
  }

  /// A hook that asks for a retry cannot know that it is refused: what it holds of the attempt goes on in front of the end.
  func testARefusedRetryPassesHeldHeadersAndTheError() async {
    let transport = ScriptedTransport { stream in
      stream.onFinish = { stream in
        stream.respondStream()
        stream.endStream(.unavailable)
      }
    }
    let client = ProtocolClient.scripted(transport, interceptors: [Self.retrying(holdingHeaders: true)]) {
      $0.retries.maximumRetries = 1
    }
    let results = await client.results()
    XCTAssertEqual(results, ["headers", "end unavailable"])
    XCTAssertEqual(transport.streams.count, 2)
  }

  /// A retry of byte hooks does not encode messages again. So their bytes must not count twice against the limit.
  func testMessagesThatByteHooksSendAgainCountOnce() async {
    let transport = ScriptedTransport { stream in
      // After each second message that is new.
      stream.onWrite = { stream, _ in
        if stream.sentMessages.count % 2 == 0 { stream.fail(ConnectError(code: .unavailable)) }
      }
    }
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [Self.retrying(bytes: true, after: .seconds(1))]
    ) {
      $0.retries = .init(maximumRetries: 100, maximumReplayBytes: 10)
    }
    let ended = Signal<Code>()
    let handle = client.bidirectionalStream(.bidirectional) { result in
      if case .complete(let code, _, _) = result { ended.fire(code) }
    }
    // Each of these takes three bytes: after the fourth there are more than ten.
    for message in ["a", "b", "c", "d"] {
      handle.send(Text(message))
      transport.virtualExecutor.runUntilIdle()
      transport.virtualExecutor.advance(by: .seconds(1))
    }
    transport.virtualExecutor.advance(by: .seconds(200))
    let code = await ended.wait()
    XCTAssertEqual(code, .unavailable)
    XCTAssertLessThan(transport.streams.count, 100)
  }

  func testMessagesAreSentAgainFromBothLevels() async {
    for (bytes, encodes) in [(false, 6), (true, 2)] {
      let probe = InterceptorProbe()
      let codec = CountingCodec()
      let transport = ScriptedTransport.replying([Self.failing, Self.failing, StreamChainTests.echo])
      let client = ProtocolClient.scripted(
        transport,
        interceptors: [probe.factory("A", levels: [.message]), Self.retrying(bytes: bytes)]
      ) { $0.codec = codec }
      let results = await client.results()
      XCTAssertEqual(results, ["headers", "a", "b", "end ok"])
      XCTAssertEqual(codec.encodes, encodes)
      XCTAssertEqual(transport.streams.map(\.sentMessages), Array(repeating: ["\"a\"", "\"b\""], count: 3))
      XCTAssertEqual(probe.events.count { $0.short == "A > a" }, bytes ? 1 : 3)
      XCTAssertEqual(
        probe.events.map(\.short).filter { $0.contains("<") },
        ["A < headers", "A < a", "A < b", "A < end ok"]
      )
    }
  }

  func testHeadersHeldBackAllowARetryOfAnErrorBehindThem() async {
    let transport = ScriptedTransport.replying([
      { stream in
        stream.respondStream()
        stream.endStream(.unavailable)
      }, StreamChainTests.echo,
    ])
    let client = ProtocolClient.scripted(transport, interceptors: [Self.retrying(holdingHeaders: true)])
    let results = await client.results()
    XCTAssertEqual(results, ["headers", "a", "b", "end ok"])
    XCTAssertEqual(transport.streams.count, 2)
  }

  func testRefusedAfterAResultHasGoneOut() async {
    let transport = ScriptedTransport { stream in
      stream.respondStream()
      stream.endStream(.unavailable)
    }
    let client = ProtocolClient.scripted(transport, interceptors: [Self.retrying()])
    let results = await client.results()
    XCTAssertEqual(results, ["headers", "end unavailable"])
    XCTAssertEqual(transport.streams.count, 1)
  }

  func testRefusedWhenMoreWasSentThanIsKept() async {
    for (bytes, size, attempts) in [(false, 3, 4), (false, 5, 1), (true, 3, 4), (true, 5, 1)] {
      let transport = ScriptedTransport(Self.failing)
      let client = ProtocolClient.scripted(transport, interceptors: [Self.retrying(bytes: bytes)]) {
        $0.retries.maximumReplayBytes = 10
      }
      let message = Text(String(repeating: "x", count: size - 2))
      let results = await client.results(sending: [message, message, message])
      XCTAssertEqual(results, ["end unavailable"])
      XCTAssertEqual(transport.streams.count, attempts, "bytes: \(bytes), size: \(size)")
    }
  }

  func testDelayHoldsBackMessagesAndEnd() async {
    let transport = ScriptedTransport.replying([
      { $0.fail(ConnectError(code: .unavailable)) }, StreamChainTests.echo,
    ])
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [Self.retrying(after: .seconds(1))],
      timeout: .seconds(10)
    )
    let results = Box<[String]>([])
    let handle = client.bidirectionalStream(.bidirectional) { results.value = results.value + [$0.short] }
    transport.virtualExecutor.runUntilIdle()
    handle.send("a")
    handle.finish()
    transport.virtualExecutor.runUntilIdle()
    XCTAssertEqual(transport.streams.count, 1)
    transport.virtualExecutor.advance(by: .seconds(1))
    XCTAssertEqual(transport.streams.count, 2)
    XCTAssertEqual(results.value, ["headers", "a", "end ok"])
    XCTAssertEqual(transport.virtualExecutor.scheduled, [])
  }

  func testTheCapHoldsAndTheLastErrorIsReported() async {
    let count = Box(0)
    let transport = ScriptedTransport { stream in
      stream.fail(ConnectError(code: .unavailable, message: "attempt \(count.increment())"))
    }
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [Self.retrying(), Self.retrying(bytes: true)]
    )
    do {
      for try await _ in client.serverStream(.serverStream, "x").messages {}
      XCTFail("no error")
    } catch {
      XCTAssertEqual((error as? ConnectError)?.message, "attempt 4")
    }
    XCTAssertEqual(transport.streams.count, 4)
  }
}
