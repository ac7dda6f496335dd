import Connect
import XCTest

@testable import ConnectChannels

/// Drives a pool as an endpoint would, without I/O: remembers what the actions asked for.
struct PoolHarness {
  typealias Pool = ConnectionPool<Int, Int>

  var pool: Pool
  var now = Duration.zero

  /// Attempts that the pool has asked for, oldest first.
  var attempts: [Pool.ConnectionID] = []
  var abandoned: [Pool.ConnectionID] = []
  /// Waiter to connection, in the order in which they were started.
  var started: [(waiter: Int, connection: Int)] = []
  var failed: [(waiter: Int, error: ConnectError)] = []
  var drained: [Int] = []
  var closed: [Int] = []
  var backOffs: [Int] = []
  /// The errors with which the pool was lost.
  var losses: [ConnectError?] = []
  var idleChecks: [Duration] = []
  var finishedCount = 0

  private var nextConnection = 100
  private(set) var ids: [Int: Pool.ConnectionID] = [:]

  init(
    http1: Int = 2,
    http2: Int = 2,
    waiting: Int = 10,
    idle: Duration = .seconds(60),
    version: HTTPConnectionInfo.Version?
  ) {
    self.pool = Pool(
      limits: .init(
        http1Connections: http1,
        http2Connections: http2,
        waitingCalls: waiting,
        idleTimeout: idle
      ),
      version: version,
      opensWhenEmpty: true
    )
  }

  mutating func run(_ actions: [Pool.Action]) {
    for action in actions {
      switch action {
      case .open(let id): self.attempts.append(id)
      case .start(let waiter, let connection, _): self.started.append((waiter, connection))
      case .fail(let waiter, let error): self.failed.append((waiter, error))
      case .drain(let connection): self.drained.append(connection)
      case .close(let connection, _): self.closed.append(connection)
      case .abandon(let id, _):
        self.abandoned.append(id)
        self.attempts.removeAll { $0 == id }
      case .backOff(let failures): self.backOffs.append(failures)
      case .lost(let error):
        self.losses.append(error)
        // A channel would pick again for them, and connect again.
        self.pool.isLost = false
        for waiter in self.pool.takeWaiting() {
          self.failed.append((waiter, error ?? ConnectError(code: .unavailable, message: "lost")))
        }
      case .checkIdle(let delay): self.idleChecks.append(delay)
      case .finished: self.finishedCount += 1
      }
    }
  }

  /// The handle if the call waits.
  @discardableResult
  mutating func wait(_ waiter: Int, file: StaticString = #filePath, line: UInt = #line) -> Pool.Handle? {
    switch self.pool.enqueue(waiter) {
    case .waiting(let handle, let actions):
      self.run(actions)
      return handle
    case .tooMany, .shutDown:
      XCTFail("refused", file: file, line: line)
      return nil
    }
  }

  /// Lets the oldest attempt succeed; gives the connection's number.
  @discardableResult
  mutating func succeed(_ version: HTTPConnectionInfo.Version, streams: Int = 1) -> Int {
    let connection = self.establish(version)
    self.canServe(connection, streams)
    return connection
  }

  mutating func establish(_ version: HTTPConnectionInfo.Version) -> Int {
    let id = self.attempts.removeFirst()
    let connection = self.nextConnection
    self.nextConnection += 1
    self.ids[connection] = id
    self.run(self.pool.connectionEstablished(id, connection, version: version))
    return connection
  }

  mutating func canServe(_ connection: Int, _ streams: Int) {
    guard let id = self.ids[connection] else { return }
    self.run(self.pool.connection(id, canServe: streams, now: self.now))
  }

  mutating func failAttempt(_ message: String = "refused") {
    let id = self.attempts.removeFirst()
    self.run(self.pool.connectionClosed(id, error: ConnectError(code: .unavailable, message: message)))
  }

  mutating func streamCloses(on connection: Int) {
    guard let id = self.ids[connection] else { return }
    self.run(self.pool.streamClosed(id, now: self.now))
  }

  mutating func willClose(_ connection: Int) {
    guard let id = self.ids[connection] else { return }
    self.run(self.pool.connectionWillClose(id))
  }

  mutating func closes(_ connection: Int) {
    guard let id = self.ids.removeValue(forKey: connection) else { return }
    self.run(self.pool.connectionClosed(id, error: ConnectError(code: .unavailable, message: "lost")))
  }

  mutating func checkIdle(at time: Duration) {
    self.now = time
    self.run(self.pool.checkIdle(now: time))
  }
}
