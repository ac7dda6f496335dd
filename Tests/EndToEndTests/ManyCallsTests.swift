internal import Connect
internal import ConnectNIO
internal import LoopbackServer
internal import SwiftProtobuf
internal import Synchronization
import XCTest

/// Very many calls: each finishes once, connections are bounded, and memory stays where it was.
final class ManyCallsTests: XCTestCase {
  // MARK: At once

  /// 10,000 calls at once, with callbacks, each of which knows its own answer.
  func testTenThousandAtOnce() async throws {
    let count = 10_000
    for version in Version.allCases {
      try await EmbeddedServer.run(version, server: self.uncounted, configure: { $1.timeout = .seconds(300) })
      { embedded in
        let completions = Mutex([Int](repeating: 0, count: count))
        let wrong = Recorder<String>()
        let finished = Counter()
        for index in 0..<count {
          embedded.client.unary(TestMethods.echo, .with { $0.payload.small = Int32(index) }) { response in
            if response.message?.payload.small != Int32(index) { wrong.record("\(index): \(response)") }
            completions.withLock { $0[index] += 1 }
            finished.increment()
          }
        }
        try await eventually("\(count) calls, only \(finished.value)", within: .seconds(300)) {
          finished.value >= count
        }
        XCTAssertEqual(wrong.values.first, nil, version.rawValue)
        XCTAssertTrue(completions.withLock { $0.allSatisfy { $0 == 1 } }, version.rawValue)
        let snapshot = embedded.server.journal.snapshot
        XCTAssertEqual(snapshot.requestCount, count, version.rawValue)
        XCTAssertEqual(snapshot.resetCount, 0, version.rawValue)
        let limits = NIOHTTPClient.Configuration.Limits.defaults
        let limit = version == .http1 ? limits.http1ConnectionsPerAddress : limits.http2ConnectionsPerAddress
        XCTAssertLessThanOrEqual(snapshot.acceptedConnections, limit, version.rawValue)
      }
    }
  }

  /// The same from 10,000 tasks.
  func testTenThousandTasksAtOnce() async throws {
    let count = 10_000
    try await EmbeddedServer.run(.http2, server: self.uncounted, configure: { $1.timeout = .seconds(300) }) {
      embedded in
      let client = embedded.client
      let sum = await withTaskGroup(of: Int.self) { group in
        for index in 0..<count {
          group.addTask {
            let response = await client.unary(TestMethods.echo, .with { $0.payload.small = Int32(index) })
            return response.message.map { Int($0.payload.small) } ?? -count * count
          }
        }
        return await group.reduce(0, +)
      }
      XCTAssertEqual(sum, count * (count - 1) / 2)
      XCTAssertEqual(embedded.server.journal.snapshot.requestCount, count)
    }
  }

  /// As many connections as the limit says, and no more.
  func testFewConnections() async throws {
    try await EmbeddedServer.run(.http1, configure: { http, _ in http.limits.http1ConnectionsPerAddress = 3 })
    { embedded in
      let client = embedded.client
      await withTaskGroup(of: Code.self) { group in
        for _ in 0..<100 {
          group.addTask { await client.unary(TestMethods.echo, .with { $0.instruction.delayMs = 2 }).code }
        }
        for await code in group { XCTAssertEqual(code, .ok) }
      }
      XCTAssertEqual(embedded.server.journal.snapshot.acceptedConnections, 3)
    }
  }

  /// Beyond the limit of waiting calls they fail at once; those that wait do not suffer.
  func testTooManyWaitingCalls() async throws {
    let limits = NIOHTTPClient.Configuration.Limits(http1ConnectionsPerAddress: 1, waitingCalls: 5)
    try await EmbeddedServer.run(.http1, configure: { http, _ in http.limits = limits }) { embedded in
      let release = Counter()
      embedded.server.onRaw("/held") { request, responder in
        _ = try await request.body()
        while release.value == 0 { try await responder.sleep(.milliseconds(2)) }
        try await responder.respond(headers: ["content-type": "application/proto"])
      }
      let responses = Recorder<ResponseMessage<EchoResponse>>()
      embedded.client.unary(unaryMethod("/held"), EchoRequest()) { responses.record($0) }
      _ = try await embedded.server.request(to: "/held")
      for _ in 0..<10 { embedded.client.unary(unaryMethod("/held"), EchoRequest()) { responses.record($0) } }
      try await responses.wait(for: 5)
      XCTAssertEqual(responses.values.map(\.code), Array(repeating: .resourceExhausted, count: 5))
      release.increment()
      try await responses.wait(for: 11)
      XCTAssertEqual(responses.values.suffix(6).map(\.code), Array(repeating: .ok, count: 6))
    }
  }

  // MARK: One after the other

  /// How much more this process, client and server, may hold for each further call, in bytes. A call that is
  /// left behind takes more.
  private static let growthLimit = 64.0

  /// Calls in sequence over HTTP/2, and beside them a quarter as many over HTTP/1.1: none leaves anything behind, and all
  /// go over one connection.
  func testMemoryAfterManyCalls() async throws {
    try await EmbeddedServer.run(.http1, server: self.uncounted) { http1 in
      try await EmbeddedServer.run(.http2, server: self.uncounted) { http2 in
        for server in [http1.server, http2.server] {
          server.onRaw("/quick") { request, responder in
            let body = try await request.body()
            try await responder.respond(headers: ["content-type": "application/proto"], body: body)
          }
        }
        let (first, second) = (http1.client, http2.client)
        let growth = try await Memory.growth(of: 2_000) { count in
          async let side: Void = CallSequence(client: first, count: count / 4).run()
          try await CallSequence(client: second, count: count).run()
          try await side
        }
        XCTAssertLessThan(growth, Self.growthLimit)
        XCTAssertEqual(http1.server.journal.snapshot.requestCount, Memory.rounds * 500)
        XCTAssertEqual(http2.server.journal.snapshot.requestCount, Memory.rounds * 2_000)
        XCTAssertEqual(http1.server.journal.snapshot.acceptedConnections, 1)
        XCTAssertEqual(http2.server.journal.snapshot.acceptedConnections, 1)
      }
    }
  }

  /// Streams, which have more state.
  func testMemoryAfterManyStreams() async throws {
    try await EmbeddedServer.run(.http2, server: self.uncounted) { embedded in
      let growth = try await Memory.growth(of: 500) { count in
        for index in 0..<count {
          let stream = embedded.client.serverStream(
            TestMethods.count,
            .with { $0.instruction.messageCount = 2 }
          )
          let outcome = await stream.results.collect()
          guard outcome.code == .ok else { throw LoopbackServerError("stream \(index): \(outcome)") }
        }
      }
      XCTAssertLessThan(growth, Self.growthLimit)
    }
  }

  /// Calls that are cancelled leave nothing behind either.
  func testMemoryAfterManyCancelledCalls() async throws {
    try await EmbeddedServer.run(.http2, server: self.uncounted) { embedded in
      embedded.server.onRaw("/never") { _, responder in await responder.waitUntilClosed() }
      let growth = try await Memory.growth(of: 500) { count in
        for index in 0..<count {
          let code: Code = await withCheckedContinuation { continuation in
            let handle = embedded.client.unary(unaryMethod("/never"), EchoRequest()) {
              continuation.resume(returning: $0.code)
            }
            handle.cancel()
          }
          guard code == .canceled else { throw LoopbackServerError("call \(index): \(code)") }
        }
      }
      XCTAssertLessThan(growth, Self.growthLimit)
    }
  }

  private var uncounted: LoopbackServer.Configuration {
    var configuration = LoopbackServer.Configuration.plaintext
    configuration.journalLimit = 0
    return configuration
  }
}

/// Calls in sequence, each of which the callback of the one before makes.
private final class CallSequence: Sendable {
  private let client: ProtocolClient
  private let count: Int

  init(client: ProtocolClient, count: Int) {
    self.client = client
    self.count = count
  }

  /// - Throws: If a call fails.
  func run() async throws {
    try await withCheckedThrowingContinuation { continuation in
      self.start(0) { continuation.resume(with: $0) }
    }
  }

  private func start(_ index: Int, _ completion: @escaping @Sendable (Result<Void, any Error>) -> Void) {
    guard index < self.count else { return completion(.success(())) }
    let number = Int32(index)
    self.client.unary(unaryMethod("/quick"), .with { $0.payload.small = number }) { response in
      guard response.message?.payload.small == number else {
        return completion(.failure(LoopbackServerError("call \(number): \(response)")))
      }
      self.start(index + 1, completion)
    }
  }
}
