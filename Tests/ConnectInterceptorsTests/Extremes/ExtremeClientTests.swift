import Connect
import ConnectInterceptors
import ConnectTesting
import LoopbackServer
import XCTest

/// Calls of clients whose configurations have extreme numbers. What they come to does not matter here: nothing traps, and
/// each call ends.
final class ExtremeClientTests: XCTestCase {
  private typealias Server = ScriptedServer

  /// Makes a unary call and a stream, both of which fail once and are retried, as far as the configuration lets them.
  private func makeCalls(
    options: CallOptions = CallOptions(),
    _ configure: (inout ProtocolClientConfig) -> Void
  ) async throws {
    for networkProtocol in [NetworkProtocol.connect, .grpc, .grpcWeb] {
      let server = Server { number, _ in if number.isMultiple(of: 2) { throw ConnectError.away } }
      var config = ProtocolClientConfig(host: "http://scripted.test", networkProtocol: networkProtocol)
      config.interceptors = [
        { _ in RetryInterceptor(budget: RetryBudget()) }, { _ in RequestInterceptor() },
      ]
      configure(&config)
      let client = ProtocolClient(httpClient: server.transport, config: config)
      _ = try await server.executor.lettingTimePass(upTo: .seconds(Int64.max)) {
        for _ in 0..<2 {
          _ = await client.unary(Server.method(.unary, .noSideEffects), .text("x"), options: options)
          _ = try await client.serverStream(Server.method(.serverStream), .text("x"), options: options)
            .results.collected()
        }
      }
    }
  }

  func testClient() async throws {
    let config = ProtocolClientConfig(host: "")
    try await withExtremes(
      of: config,
      [.init("timeout", \.timeout), .init("deadlineMargin", \.deadlineMargin)]
    ) { extreme in
      try await self.makeCalls {
        $0.timeout = extreme.timeout
        $0.deadlineMargin = extreme.deadlineMargin
      }
    }
  }

  func testOptions() async throws {
    for timeout in Extremes.durations {
      try await self.makeCalls(options: CallOptions(timeout: timeout)) { _ in }
    }
  }

  func testInheritedDeadlines() async throws {
    for time in Extremes.durations {
      for margin in Extremes.durations {
        let server = Server { _, _ in }
        var config = ProtocolClientConfig(host: "http://scripted.test")
        config.deadlineMargin = margin
        let client = ProtocolClient(httpClient: server.transport, config: config)
        let deadlines = [
          CallDeadline(in: time, clock: server.executor.clock),
          CallDeadline(VirtualClock.Instant(offset: time), clock: server.executor.clock),
        ]
        for deadline in deadlines {
          var options = CallOptions()
          options.context.deadline = deadline
          _ = try await server.call(client, options: options)
          XCTAssertLessThan(deadline.remaining.components.seconds, 101 * 366 * 24 * 3600)
        }
      }
    }
  }

  func testLimits() async throws {
    try await withExtremes(
      of: ProtocolClientConfig.Limits.defaults,
      [
        .init("maximumReceivedMessageSize", \.maximumReceivedMessageSize),
        .init("maximumSentMessageSize", \.maximumSentMessageSize),
        .init("maximumWaitingValues", \.maximumWaitingValues),
        .init("maximumQueuedMessages", \.maximumQueuedMessages),
      ]
    ) { limits in try await self.makeCalls { $0.limits = limits } }
  }

  func testRetriesAndCompression() async throws {
    try await withExtremes(
      of: ProtocolClientConfig.Retries.defaults,
      [.init("maximumRetries", \.maximumRetries), .init("maximumReplayBytes", \.maximumReplayBytes)]
    ) { retries in try await self.makeCalls { $0.retries = retries } }
    try await withExtremes(
      of: Compression.defaults,
      [.init("minimumRequestBytes", \.minimumRequestBytes)]
    ) { compression in
      var compression = compression
      compression.requests = GzipCompressionPool()
      try await self.makeCalls { $0.compression = compression }
    }
    for number in Extremes.integers {
      try await self.makeCalls { $0.unaryGET = .enabledForLimitedPayloadSizes(maxBytes: number) }
      for pool in [GzipCompressionPool(level: number), DeflateCompressionPool(level: number)]
        as [any CompressionPool]
      {
        try await self.makeCalls { $0.compression = Compression(requests: pool, minimumRequestBytes: 0) }
      }
    }
  }

  func testHedging() async throws {
    try await withExtremes(
      of: HedgingPolicy(delay: .seconds(1)),
      [
        .init("maximumAttempts", \.maximumAttempts), .init("delay", \.delay),
        .init("longestServerDelay", \.longestServerDelay),
      ]
    ) { policy in try await self.makeCalls { $0.hedging = { _ in policy } } }
  }

  func testDelaysThatServersWant() async throws {
    let values = ["9223372036854775807", "-9223372036854775808", "99999999999999999999", "0"]
    for value in values {
      for header in ["retry-after", "grpc-retry-pushback-ms", "age"] {
        for longest in Extremes.durations {
          let server = Server { number, context in
            context.responseHeaders[header] = [value]
            context.responseHeaders["cache-control"] = ["max-age=\(value), stale-if-error=\(value)"]
            if number == 1 { throw ConnectError.away([header: [value]]) }
          }
          let cache = ResponseCache(clock: server.executor.clock)
          let budget = RetryBudget()
          let client = server.client(
            { _ in CacheReadInterceptor(cache) },
            { _ in CacheWriteInterceptor(cache) },
            { _ in RetryInterceptor(policy: RetryPolicy(longestServerDelay: longest), budget: budget) }
          )
          let method = Server.method(.unary, .noSideEffects)
          let options = CallOptions(hedging: HedgingPolicy(delay: longest, longestServerDelay: longest))
          _ = try await server.executor.lettingTimePass(upTo: .seconds(Int64.max)) {
            for _ in 0..<3 { _ = await client.unary(method, .text("x"), options: options) }
          }
        }
      }
    }
  }

  func testMetricsAndDemand() async throws {
    for time in Extremes.durations {
      let setup = HTTPConnectionInfo.Setup(nameResolution: time, connecting: time, tls: time)
      let connection = HTTPConnectionInfo(version: .http2, isReused: false, setup: setup)
      let metrics = HTTPMetrics(attempt: 1, timeToConnection: time, connection: connection)
      XCTAssertGreaterThanOrEqual(try XCTUnwrap(metrics.queueing), .zero)
    }
    let server = Server { _, _ in }
    let client = server.client()
    for number in Extremes.integers {
      let ends = Observed(0)
      let handle = client.serverStream(Server.method(.serverStream), .text("x"), demand: number) {
        if case .complete = $0 { ends.update { $0 += 1 } }
      }
      for number in Extremes.integers { handle.request(number) }
      handle.request(.max)
      let hasEnded = await ends.wait(within: .seconds(60)) { $0 == 1 ? true : nil }
      XCTAssertEqual(hasEnded, true)
    }
  }
}
