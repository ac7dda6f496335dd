import Connect
import XCTest

@testable import ConnectChannels

/// Random events against invariants: no call is lost or answered twice, calls start in order, and no limit is
/// passed. A failure prints the seed that repeats it.
final class ConnectionPoolRandomTests: XCTestCase {
  func testRandomEvents() {
    for _ in 0..<300 { self.run(seed: .random(in: 0 ... .max)) }
  }

  private func run(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var world = RandomWorld(seed: seed, using: &random)
    for _ in 0..<400 {
      world.step(using: &random)
      world.check()
    }
    world.finish(using: &random)
  }
}

private struct RandomWorld {
  let seed: UInt64
  let http1Limit: Int
  let http2Limit: Int
  let waitingLimit: Int

  var harness: PoolHarness
  var nextCall = 0
  var waiting: [(call: Int, handle: PoolHarness.Pool.Handle)] = []
  var versions: [Int: HTTPConnectionInfo.Version] = [:]
  var limits: [Int: Int] = [:]
  var streams: [Int: Int] = [:]
  var closing: Set<Int> = []
  var pendingIDs: [Int] = []
  var isShutDown = false
  var seenStarted = 0
  var seenFailed = 0
  var seenDrained = 0
  var seenBackOffs = 0

  init(seed: UInt64, using random: inout SeededRandom) {
    self.seed = seed
    self.http1Limit = .random(in: 1...4, using: &random)
    self.http2Limit = .random(in: 1...3, using: &random)
    self.waitingLimit = .random(in: 0...12, using: &random)
    self.harness = PoolHarness(
      http1: self.http1Limit,
      http2: self.http2Limit,
      waiting: self.waitingLimit,
      idle: .seconds(5),
      version: [nil, .http1, .http2].randomElement(using: &random) ?? nil
    )
  }

  private var live: [Int] { self.versions.keys.sorted() }

  mutating func step(using random: inout SeededRandom) {
    self.harness.now += .milliseconds(Int.random(in: 0..<500, using: &random))
    switch Int.random(in: 0..<100, using: &random) {
    case 0..<35:
      self.startCall()
    case 35..<42:
      guard let index = self.waiting.indices.randomElement(using: &random) else { return }
      let (_, handle) = self.waiting.remove(at: index)
      self.harness.run(self.harness.pool.cancel(handle))
    case 42..<54:
      guard !self.harness.attempts.isEmpty else { return }
      let version: HTTPConnectionInfo.Version = Bool.random(using: &random) ? .http1 : .http2
      let connection = self.harness.establish(version)
      self.versions[connection] = version
      self.pendingIDs.append(connection)
    case 54..<64:
      guard let connection = self.pendingIDs.popLast() else { return }
      self.serve(connection, version: self.versions[connection], using: &random)
    case 64..<70:
      if !self.harness.attempts.isEmpty { self.harness.failAttempt() }
    case 70..<88:
      let busy = self.live.filter { self.streams[$0, default: 0] > 0 }
      guard let connection = busy.randomElement(using: &random) else { return }
      self.streams[connection, default: 0] -= 1
      self.harness.streamCloses(on: connection)
    case 88..<91:
      guard let connection = self.live.randomElement(using: &random) else { return }
      if self.limits[connection] != nil { self.closing.insert(connection) }
      self.harness.willClose(connection)
    case 91..<94:
      guard let connection = self.live.randomElement(using: &random) else { return }
      self.close(connection)
    case 94..<96:
      self.harness.checkIdle(at: self.harness.now)
    case 96..<98:
      self.harness.run(self.harness.pool.backoffDidElapse())
    case 98:
      guard let connection = self.limits.keys.sorted().randomElement(using: &random),
        self.versions[connection] == .http2
      else { return }
      self.serve(connection, version: .http2, using: &random)
    default:
      if Int.random(in: 0..<20, using: &random) == 0 {
        self.isShutDown = true
        self.harness.run(self.harness.pool.shutDown())
      }
    }
  }

  private mutating func startCall() {
    self.nextCall += 1
    if let connection = self.harness.pool.leaseConnection() {
      XCTAssertTrue(self.waiting.isEmpty, "overtook those who wait; seed \(self.seed)")
      XCTAssertFalse(self.isShutDown, "seed \(self.seed)")
      self.use(connection)
      return
    }
    let count = self.waiting.count
    let maximum = self.harness.pool.growth.maximumWaiting(self.harness.pool.connections)
    XCTAssertGreaterThanOrEqual(maximum, self.waitingLimit, "seed \(self.seed)")
    switch self.harness.pool.enqueue(self.nextCall) {
    case .waiting(let handle, let actions):
      XCTAssertLessThan(count, maximum, "seed \(self.seed)")
      self.waiting.append((self.nextCall, handle))
      self.harness.run(actions)
    case .tooMany:
      XCTAssertGreaterThanOrEqual(count, maximum, "seed \(self.seed)")
    case .shutDown:
      XCTAssertTrue(self.isShutDown, "seed \(self.seed)")
    }
  }

  private mutating func serve(
    _ connection: Int,
    version: HTTPConnectionInfo.Version?,
    using random: inout SeededRandom
  ) {
    let count = version == .http2 ? Int.random(in: 0...4, using: &random) : 1
    self.limits[connection] = count
    self.harness.canServe(connection, count)
  }

  private mutating func close(_ connection: Int) {
    self.versions[connection] = nil
    self.limits[connection] = nil
    self.streams[connection] = nil
    self.closing.remove(connection)
    self.pendingIDs.removeAll { $0 == connection }
    self.harness.closes(connection)
  }

  private mutating func use(_ connection: Int) {
    self.streams[connection, default: 0] += 1
    XCTAssertNotNil(self.versions[connection], "a stream on a connection that is gone; seed \(self.seed)")
    XCTAssertFalse(self.closing.contains(connection), "a stream on a draining connection; seed \(self.seed)")
    XCTAssertLessThanOrEqual(
      self.streams[connection, default: 0],
      self.limits[connection, default: 0],
      "too many streams; seed \(self.seed)"
    )
  }

  /// Looks at what the last event led to.
  mutating func check() {
    for connection in self.live {
      guard let id = self.harness.ids[connection], self.harness.abandoned.contains(id) else { continue }
      self.close(connection)
    }
    for (call, connection) in self.harness.started[self.seenStarted...] {
      XCTAssertEqual(self.waiting.first?.call, call, "not the first in line; seed \(self.seed)")
      self.waiting.removeAll { $0.call == call }
      self.use(connection)
    }
    self.seenStarted = self.harness.started.count
    for drained in self.harness.drained[self.seenDrained...] { self.closing.insert(drained) }
    self.seenDrained = self.harness.drained.count
    for (call, _) in self.harness.failed[self.seenFailed...] {
      XCTAssertTrue(self.waiting.contains { $0.call == call }, "answered twice; seed \(self.seed)")
      self.waiting.removeAll { $0.call == call }
    }
    self.seenFailed = self.harness.failed.count

    let pool = self.harness.pool
    XCTAssertEqual(pool.waiting.count, self.waiting.count, "a call was lost; seed \(self.seed)")
    XCTAssertLessThanOrEqual(
      pool.connections.count(.open) + pool.connections.count(.opening),
      max(self.http1Limit, self.http2Limit),
      "seed \(self.seed)"
    )
    let usable = self.limits.keys.filter { !self.closing.contains($0) }
    XCTAssertEqual(pool.connections.count(.open), usable.count, "seed \(self.seed)")
    XCTAssertLessThanOrEqual(
      usable.filter { self.versions[$0] == .http2 }.count,
      self.http2Limit,
      "seed \(self.seed)"
    )
    if !self.waiting.isEmpty {
      let room = usable.contains { self.streams[$0, default: 0] < self.limits[$0, default: 0] }
      XCTAssertFalse(room, "a call waits while there is room; seed \(self.seed)")
      let isServed =
        pool.connections.count(.open) + pool.connections.count(.opening) > 0
        || self.harness.backOffs.count > self.seenBackOffs
      XCTAssertTrue(isServed, "nobody will ever serve those who wait; seed \(self.seed)")
    }
    for slot in pool.connections.slots where slot.phase == .open {
      XCTAssertEqual(self.streams[slot.connection ?? -1, default: 0], slot.streams, "seed \(self.seed)")
    }
  }

  /// Whatever has happened, a shutdown ends it.
  mutating func finish(using random: inout SeededRandom) {
    self.harness.run(self.harness.pool.shutDown())
    self.harness.run(
      self.harness.pool.forceShutDown(ConnectError(code: .unavailable, message: "time is up"))
    )
    self.check()
    XCTAssertTrue(self.waiting.isEmpty, "seed \(self.seed)")
    for connection in self.live.shuffled(using: &random) { self.close(connection) }
    XCTAssertEqual(self.harness.finishedCount, 1, "seed \(self.seed)")
    XCTAssertEqual(
      self.harness.pool.connections.count(.open) + self.harness.pool.connections.count(.opening),
      0,
      "seed \(self.seed)"
    )
  }
}
