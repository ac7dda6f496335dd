import Connect
import ConnectTesting
import XCTest

/// Clients whose transport spreads calls over several executors.
final class ClientShardsTests: XCTestCase {
  /// Two transports in one, each on an executor of its own.
  private final class SpreadingTransport: HTTPClientInterface {
    let transports: [ScriptedTransport]

    init(_ count: Int = 2, _ script: @escaping ScriptedTransport.Script) {
      self.transports = (0..<count).map { _ in ScriptedTransport(script) }
    }

    var executors: [any CallExecutor] { self.transports.map(\.virtualExecutor) }

    func endpoint(
      for origin: Origin,
      on executor: (any CallExecutor)?,
      requiresHTTP2: Bool
    ) throws(ConnectError) -> any HTTPEndpoint {
      guard let transport = self.transports.first(where: { $0.virtualExecutor === executor }) else {
        throw ConnectError(code: .internalError, message: "no such executor")
      }
      return transport
    }

    var client: ProtocolClient {
      ProtocolClient(
        httpClient: self,
        config: ProtocolClientConfig(host: "http://demo.test", codec: JSONCodec())
      )
    }

    func runUntilIdle() { for transport in self.transports { transport.virtualExecutor.runUntilIdle() } }

    /// How many streams each executor has had.
    var counts: [Int] {
      self.runUntilIdle()
      return self.transports.map(\.streams.count)
    }
  }

  func testCallsGoWhereTheFewestAre() {
    let transport = SpreadingTransport(3) { _ in }
    let client = transport.client
    var calls = (0..<6).map { _ in client.unary(.unary, "a") { _ in } }
    XCTAssertEqual(transport.counts, [2, 2, 2])
    // Those that have ended do not count any more, whichever way they end.
    calls[1].cancel()
    calls[4].cancel()
    transport.runUntilIdle()
    calls += (0..<2).map { _ in client.unary(.unary, "a") { _ in } }
    XCTAssertEqual(transport.counts, [2, 4, 2])
    calls.append(client.unary(.unary, "a") { _ in })
    XCTAssertEqual(transport.counts, [3, 4, 2])
    for call in calls { call.cancel() }
    transport.runUntilIdle()
  }

  /// One call after the other stays on one executor, and so on one connection.
  func testCallsInSequenceStayTogether() async {
    let transport = SpreadingTransport { $0.reply($0.sentMessage) }
    let client = transport.client
    for _ in 0..<5 {
      let response = await client.unary(.unary, "a")
      XCTAssertEqual(response.code, .ok)
    }
    XCTAssertEqual(transport.counts, [5, 0])
  }

  /// Each form of call, where it ends by itself.
  func testEndedCallsOfEachFormDoNotCount() async {
    let transport = SpreadingTransport { $0.fail(ConnectError(code: .unavailable)) }
    let client = transport.client
    _ = await client.unary(.unary, "a")
    for await _ in client.serverStream(.serverStream, "a").results {}
    _ = await client.clientStream(.clientStream).closeAndReceive()
    for await _ in client.bidirectionalStream(.bidirectional).results {}
    // Dropped before it has ended.
    _ = client.bidirectionalStream(.bidirectional)
    transport.runUntilIdle()
    _ = await client.unary(.unary, "a")
    XCTAssertEqual(transport.counts, [6, 0])
  }

  /// Calls that cannot be made end as well.
  func testCallsThatCannotBeMadeDoNotCount() async {
    let transport = SpreadingTransport { $0.reply($0.sentMessage) }
    let client = transport.client
    for _ in 0..<3 {
      let response = await client.unary(.serverStream, "a")
      XCTAssertEqual(response.code, .invalidArgument)
    }
    _ = await client.unary(.unary, "a")
    XCTAssertEqual(transport.counts, [1, 0])
  }

  func testACallThatIsMadeOnAnExecutorStaysThere() async throws {
    let transport = SpreadingTransport { $0.reply($0.sentMessage) }
    let client = transport.client
    XCTAssertEqual(client.taskExecutors.count, 2)
    for _ in 0..<4 {
      transport.transports[1].virtualExecutor.sync { _ = client.unary(.unary, "a") { _ in } }
    }
    XCTAssertEqual(transport.counts, [0, 4])
    let preferring = Task(executorPreference: client.taskExecutors[1]) {
      let response = await client.unary(.unary, "a")
      return (response.code, transport.transports[1].virtualExecutor.isCurrent)
    }
    let (code, isThere) = await preferring.value
    XCTAssertEqual(code, .ok)
    XCTAssertTrue(isThere)
    XCTAssertEqual(transport.counts, [0, 5])
  }

  /// What is found out about protocols on one executor counts on the others.
  func testProtocolsAreRememberedForAllExecutors() async {
    let transport = SpreadingTransport { stream in
      if stream.request.headers.first("content-type")?.hasPrefix("application/grpc+") == true {
        stream.fail(ConnectError(code: .unavailable), isUnprocessed: true, isVersionMismatch: true)
      } else {
        stream.reply(stream.sentMessage)
      }
    }
    let client = ProtocolClient(
      httpClient: transport,
      config: ProtocolClientConfig(
        host: "http://demo.test",
        networkProtocol: .automatic([.grpc, .connect]),
        codec: JSONCodec()
      )
    )
    _ = await client.unary(.unary, "a")
    XCTAssertEqual(transport.counts, [2, 0])
    transport.transports[1].virtualExecutor.sync { _ = client.unary(.unary, "a") { _ in } }
    XCTAssertEqual(transport.counts, [2, 1])
  }
}
