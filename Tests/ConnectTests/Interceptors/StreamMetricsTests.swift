import Connect
import ConnectTesting
import NIOCore
import XCTest

/// The metrics hooks of streams: what they are told, when, and in which order.
final class StreamMetricsTests: XCTestCase {
  private typealias Hook = @Sendable (HTTPMetrics, Proceed<HTTPMetrics>) -> Void

  private static func interceptor(_ hook: @escaping Hook) -> InterceptorFactory {
    TestInterceptor.make { $0.streamBytes.responseMetricsFunction = hook }
  }

  /// One that keeps what it is told.
  private static func recorder(_ metrics: Box<[HTTPMetrics]>) -> InterceptorFactory {
    self.interceptor { value, proceed in
      metrics.value = metrics.value + [value]
      proceed(value)
    }
  }

  // MARK: Content

  func testContent() async {
    let seen = Box<[HTTPMetrics]>([])
    let transport = ScriptedTransport { stream in
      stream.onFinish = { stream in
        stream.passTimeUnnoticed(.milliseconds(10))
        stream.respondStream()
        stream.sendMessage("\"x\"")
        stream.passTimeUnnoticed(.milliseconds(20))
        stream.endStream()
      }
    }
    let results = await ProtocolClient.scripted(transport, interceptors: [Self.recorder(seen)]).results()
    XCTAssertEqual(results, ["headers", "x", "end ok"])
    XCTAssertEqual(
      seen.value,
      [
        HTTPMetrics(
          attempt: 1,
          duration: .milliseconds(30),
          timeToConnection: .zero,
          timeToHeaders: .milliseconds(10),
          // Two messages of three bytes, each with its prefix.
          requestBodyBytes: 16,
          // The message, and an end of 15 bytes.
          responseBodyBytes: 28,
          connection: HTTPConnectionInfo(version: .http2, isReused: false),
          httpStatus: 200
        )
      ]
    )
  }

  func testContentOfAStreamThatFailsBeforeTheHead() async {
    let seen = Box<[HTTPMetrics]>([])
    let transport = ScriptedTransport { stream in
      stream.onFinish = { stream in
        stream.passTimeUnnoticed(.milliseconds(5))
        stream.fail(ConnectError(code: .unavailable))
      }
    }
    let client = ProtocolClient.scripted(transport, interceptors: [Self.recorder(seen)])
    let results = await client.results(sending: ["a"])
    XCTAssertEqual(results, ["end unavailable"])
    XCTAssertEqual(
      seen.value,
      [
        HTTPMetrics(
          attempt: 1,
          duration: .milliseconds(5),
          timeToConnection: .zero,
          requestBodyBytes: 8,
          connection: HTTPConnectionInfo(version: .http2, isReused: false)
        )
      ]
    )
  }

  /// What was sent and received until then.
  func testContentOfACancelledStream() async {
    let seen = Box<[HTTPMetrics]>([])
    let transport = ScriptedTransport { stream in
      stream.respondStream()
      stream.sendMessage("\"x\"")
    }
    let results = Box<[String]>([])
    let handle = ProtocolClient.scripted(transport, interceptors: [Self.recorder(seen)])
      .bidirectionalStream(.bidirectional) { results.value = results.value + [$0.short] }
    handle.send("a") { _ in }
    transport.virtualExecutor.runUntilIdle()
    XCTAssertEqual(seen.value, [])
    transport.virtualExecutor.passUnnoticed(.milliseconds(7))
    handle.cancel()
    transport.virtualExecutor.runUntilIdle()
    XCTAssertEqual(results.value, ["headers", "x", "end canceled"])
    XCTAssertEqual(
      seen.value,
      [
        HTTPMetrics(
          attempt: 1,
          duration: .milliseconds(7),
          timeToConnection: .zero,
          timeToHeaders: .zero,
          requestBodyBytes: 8,
          responseBodyBytes: 8,
          connection: HTTPConnectionInfo(version: .http2, isReused: false),
          httpStatus: 200
        )
      ]
    )
  }

  func testEachAttemptHasItsOwn() async {
    let seen = Box<[HTTPMetrics]>([])
    let failing: ScriptedTransport.Script = { stream in
      stream.onFinish = { $0.fail(ConnectError(code: .unavailable)) }
    }
    let retrying = TestInterceptor.make { interceptor in
      interceptor.streamMessages.streamResultFunction = { result, proceed in
        if case .complete(_, .some, _) = result { proceed.retry() } else { proceed(result) }
      }
    }
    let transport = ScriptedTransport.replying([failing, StreamChainTests.echo])
    let client = ProtocolClient.scripted(transport, interceptors: [Self.recorder(seen), retrying])
    let results = await client.results()
    XCTAssertEqual(results, ["headers", "a", "b", "end ok"])
    XCTAssertEqual(seen.value.map(\.attempt), [1, 2])
    XCTAssertEqual(seen.value.map(\.httpStatus), [nil, 200])
    XCTAssertEqual(seen.value.map(\.requestBodyBytes), [16, 16])
    XCTAssertEqual(seen.value.map(\.responseBodyBytes), [0, 16 + 20])
  }

  // MARK: Order

  /// From the last interceptor to the first, each with what the one before has made of them, and before the end.
  func testTheyPassInReverse() async {
    let events = Events()
    let factory: @Sendable (String) -> InterceptorFactory = { name in
      TestInterceptor.make { interceptor in
        interceptor.streamBytes.streamResultFunction = { result, proceed in
          events.add("\(name) < \(result.short)")
          proceed(result)
        }
        interceptor.streamBytes.responseMetricsFunction = { metrics, proceed in
          events.add("\(name) metrics \(metrics.requestBodyBytes)")
          var metrics = metrics
          metrics.requestBodyBytes += 100
          proceed(metrics)
        }
      }
    }
    let client = ProtocolClient.scripted(
      ScriptedTransport(StreamChainTests.echo),
      interceptors: ["A", "B", "C"].map(factory)
    )
    let results = await client.results(sending: ["x"])
    XCTAssertEqual(results, ["headers", "x", "end ok"])
    XCTAssertEqual(
      events.all.filter { $0.contains("metrics") },
      ["C metrics 8", "B metrics 108", "A metrics 208"]
    )
    XCTAssertEqual(events.all.suffix(3), ["C < end ok", "B < end ok", "A < end ok"])
  }

  func testNobodyWaitsForThem() async {
    let events = Events()
    let client = ProtocolClient.scripted(
      ScriptedTransport(StreamChainTests.echo),
      interceptors: [
        Self.interceptor { _, _ in events.add("A") },
        Self.interceptor { _, _ in events.add("B") },
      ]
    )
    let results = await client.results(sending: ["x"])
    XCTAssertEqual(results, ["headers", "x", "end ok"])
    XCTAssertEqual(events.all, ["B"], "it has not proceeded")
  }
}
