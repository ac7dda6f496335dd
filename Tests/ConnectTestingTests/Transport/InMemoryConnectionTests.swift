import Connect
import ConnectChannels
import ConnectTesting
import LoopbackServer
import NIOCore
import Synchronization
import XCTest

/// The connections of an in-memory transport, and its channels: what streams are told, timers, and the end.
final class InMemoryConnectionTests: XCTestCase {
  /// What a stream is told, in order.
  private final class Record: HTTPStreamHandler, Sendable {
    private let all = Mutex<[String]>([])
    private let connections = Mutex<[HTTPConnectionInfo]>([])
    private let onFailure: (@Sendable () -> Void)?

    init(onFailure: (@Sendable () -> Void)? = nil) {
      self.onFailure = onFailure
    }

    var events: [String] { self.all.withLock { $0 } }
    var connection: HTTPConnectionInfo? { self.connections.withLock { $0.first } }

    private func add(_ event: String) { self.all.withLock { $0.append(event) } }

    func streamDidStart(on connection: HTTPConnectionInfo) {
      self.connections.withLock { $0.append(connection) }
      self.add("start")
    }
    func streamDidBecomeWritable() { self.add("writable") }
    func streamDidReceive(_ head: HTTPResponseHead) { self.add("\(head.status)") }
    func streamDidReceive(_ bytes: ByteBuffer) { self.add("\(bytes.readableBytes) bytes") }
    func streamDidEnd(trailers: Headers) { self.add("end") }
    func streamDidFail(_ failure: HTTPStreamFailure) {
      self.add("failure\(failure.isUnprocessed ? ", unprocessed" : ""): \(failure.error.message ?? "")")
      self.onFailure?()
    }
  }

  private static let origin = Origin(scheme: .http, host: "fleet.test", port: 80)

  /// Answers `/now` at once, and others when they are over.
  private static func makeTransport(
    _ executor: VirtualExecutor,
    channel: ChannelConfiguration = ChannelConfiguration(idleTimeout: .seconds(Int64.max))
  ) -> InMemoryTransport {
    let transport = InMemoryTransport(executor: executor, channel: channel)
    transport.onRaw("/now") { try await $0.respond(body: ByteBuffer(string: "ok")) }
    transport.onRaw("/never") { await $0.waitUntilClosed() }
    return transport
  }

  private static func start(
    _ target: String,
    on endpoint: any HTTPEndpoint,
    _ record: Record = Record()
  ) -> (record: Record, stream: Confined<any HTTPStream>) {
    let request = HTTPStreamRequest(
      method: .post,
      target: target,
      headers: [:],
      body: .complete(ByteBuffer())
    )
    return (record, Confined(endpoint.startStream(request, handler: record)))
  }

  // MARK: Streams

  func testWhatStreamsAreTold() throws {
    for address in [nil, EndpointAddress("10.0.0.1:80")] {
      let executor = VirtualExecutor()
      var channel = ChannelConfiguration(idleTimeout: .seconds(Int64.max))
      if let address { channel.resolver = StaticResolver([Endpoint(address)]) }
      let transport = Self.makeTransport(executor, channel: channel)
      let endpoint = try transport.endpoint(for: Self.origin, on: nil, requiresHTTP2: false)
      for isReused in [false, true] {
        let record = executor.sync { Self.start("/now", on: endpoint).record }
        executor.runUntilIdle()
        XCTAssertEqual(record.events, ["start", "200", "2 bytes", "end"])
        let expected = HTTPConnectionInfo(
          version: .http2,
          isReused: isReused,
          remoteAddress: address?.description ?? "memory"
        )
        XCTAssertEqual(record.connection, expected)
      }
    }
  }

  /// Streams that no handler has seen may be sent again.
  func testABrokenConnectionTellsEachStreamOnce() throws {
    let executor = VirtualExecutor()
    let transport = Self.makeTransport(executor)
    let endpoint = try transport.endpoint(for: Self.origin, on: nil, requiresHTTP2: false)
    let begun = executor.sync { (0..<3).map { _ in Self.start("/never", on: endpoint) } }
    executor.runUntilIdle()
    executor.sync { begun[1].stream.value.cancel() }
    executor.runUntilIdle()
    let (cancelled, late) = executor.sync {
      transport.disconnect()
      let cancelled = Self.start("/never", on: endpoint)
      cancelled.stream.value.cancel()
      return (cancelled.record, Self.start("/never", on: endpoint).record)
    }
    executor.runUntilIdle()
    let error = "the connection broke: connection reset by peer"
    XCTAssertEqual(
      begun.map(\.record.events),
      [["start", "failure: \(error)"], ["start"], ["start", "failure: \(error)"]]
    )
    XCTAssertEqual(cancelled.events, [])
    XCTAssertEqual(late.events, ["failure, unprocessed: \(error)"])

    let next = executor.sync { Self.start("/now", on: endpoint).record }
    executor.runUntilIdle()
    XCTAssertEqual(next.events, ["start", "200", "2 bytes", "end"])
  }

  func testAStreamThatReplacesAFailedOneGetsAnotherConnection() throws {
    let executor = VirtualExecutor()
    let transport = Self.makeTransport(executor)
    let endpoint = try transport.endpoint(for: Self.origin, on: nil, requiresHTTP2: false)
    let second = Record()
    let first = Record { _ = Self.start("/now", on: endpoint, second) }
    executor.sync { _ = Self.start("/never", on: endpoint, first) }
    executor.runUntilIdle()
    transport.disconnect()
    executor.runUntilIdle()
    XCTAssertEqual(first.events.count, 2)
    XCTAssertEqual(second.events, ["start", "200", "2 bytes", "end"])
    XCTAssertEqual(second.connection?.isReused, false)
  }

  func testTheSameChannelForTheSameOrigin() throws {
    let transport = InMemoryTransport()
    let endpoint = try transport.endpoint(for: Self.origin, on: nil, requiresHTTP2: false)
    let same = try transport.endpoint(for: Self.origin, on: nil, requiresHTTP2: false)
    let other = try transport.endpoint(for: Self.origin, on: nil, requiresHTTP2: true)
    XCTAssertTrue(endpoint === same)
    XCTAssertFalse(endpoint === other)
  }

  // MARK: Time

  func testNoTimersAreLeft() throws {
    let executor = VirtualExecutor()
    let transport = Self.makeTransport(executor)
    let endpoint = try transport.endpoint(for: Self.origin, on: nil, requiresHTTP2: true)
    let first = executor.sync {
      let record = Self.start("/now", on: endpoint).record
      // Nor is there one for a moment: a test that moves time on meanwhile would take it for its own.
      XCTAssertEqual(executor.scheduled, [])
      return record
    }
    for _ in 0..<100 { executor.sync { XCTAssertEqual(executor.scheduled, []) } }
    executor.runUntilIdle()
    XCTAssertEqual(first.events.last, "end")
    XCTAssertEqual(executor.scheduled, [])
    let open = executor.sync { Self.start("/never", on: endpoint) }
    executor.runUntilIdle()
    XCTAssertEqual(open.record.events, ["start"])
    XCTAssertEqual(executor.scheduled, [])
    transport.goAway()
    executor.sync { open.stream.value.cancel() }
    executor.runUntilIdle()
    XCTAssertEqual(executor.scheduled, [])
  }

  func testAnIdleTimeout() async throws {
    let executor = VirtualExecutor()
    let log = MemoryFleet.Log()
    let channel = ChannelConfiguration(idleTimeout: .seconds(60), observer: log)
    let transport = Self.makeTransport(executor, channel: channel)
    weak var forgotten: (any HTTPEndpoint)?
    for round in 1...2 {
      do {
        let endpoint = try transport.endpoint(for: Self.origin, on: nil, requiresHTTP2: false)
        if round == 1 { forgotten = endpoint }
        let record = executor.sync { Self.start("/now", on: endpoint).record }
        executor.runUntilIdle()
        XCTAssertEqual(record.events.last, "end")
      }
      executor.advance(by: .seconds(59))
      XCTAssertEqual(log.count("closed unix:memory"), round - 1)
      executor.advance(by: .seconds(1))
      XCTAssertEqual(log.count("closed unix:memory"), round)
      XCTAssertEqual(executor.scheduled, [])
      try await executor.wait { forgotten == nil }
    }
  }

  // MARK: The end of the transport

  /// In real time.
  func testADroppedTransportClosesItsConnectionsAndLeavesNothing() async throws {
    final class Held: Sendable {}
    let log = MemoryFleet.Log()
    weak var held: Held?
    weak var transport: InMemoryTransport?
    weak var endpoint: (any HTTPEndpoint)?
    weak var executor: (any CallExecutor)?
    try await {
      let object = Held()
      held = object
      let channel = ChannelConfiguration(observer: log)
      let made = InMemoryTransport(channel: channel)
      transport = made
      executor = made.executor
      made.onUnary(TestMethods.echo) { _, _ in withExtendedLifetime(object) { EchoResponse() } }
      let client = ProtocolClient(httpClient: made, config: ProtocolClientConfig(host: "http://fleet.test"))
      endpoint = try made.endpoint(for: Self.origin, on: nil, requiresHTTP2: false)
      let response = await client.unary(TestMethods.echo, EchoRequest())
      XCTAssertEqual(response.code, .ok)
      XCTAssertEqual(log.all, ["opened unix:memory"])
    }()
    let isGone = try await Self.holds {
      transport == nil && endpoint == nil && held == nil && executor == nil
    }
    XCTAssertTrue(isGone)
    XCTAssertEqual(log.all, ["opened unix:memory", "closed unix:memory"])
  }

  /// A stream that is open goes on; the connection closes behind it.
  func testADroppedTransportFinishesWhatIsUnderWay() throws {
    let executor = VirtualExecutor()
    let log = MemoryFleet.Log()
    var transport: InMemoryTransport? = Self.makeTransport(executor, channel: .init(observer: log))
    transport?.onRaw("/slow") { exchange in
      try await exchange.sleep(for: .seconds(5))
      try await exchange.respond(body: ByteBuffer())
    }
    var endpoint = try transport?.endpoint(for: Self.origin, on: nil, requiresHTTP2: false)
    let record = try executor.sync { Self.start("/slow", on: try XCTUnwrap(endpoint)).record }
    executor.runUntilIdle()
    transport = nil
    executor.advance(by: .seconds(4))
    XCTAssertEqual(log.all, ["opened unix:memory"])
    executor.advance(by: .seconds(1))
    XCTAssertEqual(record.events, ["start", "200", "end"])
    XCTAssertEqual(log.all, ["opened unix:memory", "closed unix:memory"])
    // The channel's idle timeout ends with the channel.
    XCTAssertEqual(executor.scheduled, [.seconds(1_800)])
    endpoint = nil
    executor.runUntilIdle()
    XCTAssertEqual(executor.scheduled, [])
  }

  /// The executor may be user code: it is asked for nothing under the transport's lock.
  func testAnExecutorThatUsesTheTransport() throws {
    let executor = AskingExecutor()
    let transport = InMemoryTransport(executor: executor)
    let other = Origin(scheme: .http, host: "other.test", port: 80)
    executor.onRead.withLock {
      $0 = { _ = try? transport.endpoint(for: other, on: nil, requiresHTTP2: true) }
    }
    defer { executor.onRead.withLock { $0 = nil } }
    let endpoint = try transport.endpoint(for: Self.origin, on: nil, requiresHTTP2: false)
    let again = try transport.endpoint(for: Self.origin, on: nil, requiresHTTP2: false)
    XCTAssertTrue(endpoint === again)
  }

  private static func holds(_ condition: () -> Bool) async throws -> Bool {
    for _ in 0..<500 where !condition() { try await Task.sleep(for: .milliseconds(10)) }
    return condition()
  }
}

/// Runs user code whenever it is asked for the time.
private final class AskingExecutor: CallExecutor {
  let onRead = Mutex<(@Sendable () -> Void)?>(nil)
  private let base = VirtualExecutor()

  var now: Duration {
    self.onRead.withLock { $0 }?()
    return self.base.now
  }

  var isCurrent: Bool { self.base.isCurrent }

  func execute(_ work: @escaping @Sendable () -> Void) { self.base.execute(work) }

  func schedule(after delay: Duration, _ work: @escaping @Sendable () -> Void) -> any CallTimer {
    self.base.schedule(after: delay, work)
  }
}
