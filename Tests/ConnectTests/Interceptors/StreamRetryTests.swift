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
