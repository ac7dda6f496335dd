import Connect
import ConnectTesting
import NIOCore
import TestSupport

/// What the server makes of each stream that is started in a random call.
struct RandomServer: Sendable {
  enum Outcome: CaseIterable, Sendable {
    case fine
    /// The code is `unavailable`.
    case error
    /// The same; the next attempt is to come 300 milliseconds later.
    case errorWithDelay
    /// The same; no other attempt is to come.
    case errorWithoutOther
    /// The code is `aborted`, before the head.
    case failure
    /// The server certainly did not process it.
    case unprocessed
  }

  struct Reply: Sendable {
    var outcome: Outcome
    var latency: Duration
  }

  var replies: [Reply]

  /// - Parameter isTimed: Whether replies take time.
  init(using generator: inout SeededGenerator, isTimed: Bool) {
    self.replies = (0..<8).map { _ in
      Reply(
        outcome: Outcome.allCases.randomElement(using: &generator) ?? .fine,
        latency: isTimed ? .milliseconds(100 * Int.random(in: 0...9, using: &generator) + 1) : .zero
      )
    }
  }

  /// What becomes of a stream, counted from 0. No two sums of latencies are the same, so that the order is certain.
  func reply(to stream: Int) -> Reply {
    var reply = self.replies[stream % self.replies.count]
    if reply.latency > .zero { reply.latency += .nanoseconds(1 << (stream % 25)) }
    return reply
  }

  /// Replies to a unary request.
  func serve(_ stream: ScriptedStream, _ index: Int) {
    switch self.reply(to: index).outcome {
    case .fine: stream.reply("\"server \(index)\"")
    case .error: stream.reply(.unavailable, "server \(index)")
    case .errorWithDelay:
      stream.reply(.unavailable, "server \(index)", headers: ["grpc-retry-pushback-ms": ["300"]])
    case .errorWithoutOther:
      stream.reply(.unavailable, "server \(index)", headers: ["grpc-retry-pushback-ms": ["-1"]])
    case .failure: stream.fail(ConnectError(code: .aborted, message: "server \(index)"))
    case .unprocessed:
      stream.fail(ConnectError(code: .unavailable, message: "server \(index)"), isUnprocessed: true)
    }
  }
}

/// How a random call is ended from outside.
struct RandomEnd: Sendable {
  /// Is thrown in a model when the end comes.
  struct Reached: Error {
    /// Set while a hook waits to start another attempt: whether that is a byte hook.
    var isInRetryOfBytes: Bool?
  }

  var time: Duration
  var isDeadline: Bool

  init?(using generator: inout SeededGenerator) {
    guard Int.random(in: 0..<3, using: &generator) == 0 else { return nil }
    // Between the times at which anything else may happen.
    self.time = .milliseconds(100 * Int.random(in: 0...20, using: &generator) + 50)
    self.isDeadline = Bool.random(using: &generator)
  }

  var outcome: RandomOutcome { self.isDeadline ? "deadline_exceeded" : "canceled" }
}

/// What a random call has used up, in a model: time and attempts.
struct RandomCallState {
  private let end: RandomEnd?
  private(set) var now = Duration.zero
  private var retriesLeft: Int
  private var attempt = 1
  private(set) var hedgeCount = 0
  private var hasRetriedTransparently = false
  /// The numbers of the attempts that have gone to the network, in the order of their starts.
  private(set) var attempts: [Int] = []
  /// What each stream said of attempts before it.
  private(set) var announcements: [Int?] = []

  init(maximumRetries: Int, end: RandomEnd?) {
    self.retriesLeft = maximumRetries
    self.end = end
  }

  mutating func takeRetry(after delay: Duration = .zero) -> Bool {
    guard self.retriesLeft > 0 else { return false }
    if let end = self.end, end.isDeadline, self.now + delay >= end.time { return false }
    self.retriesLeft -= 1
    self.attempt += 1
    return true
  }

  mutating func pass(_ duration: Duration) throws {
    try self.pass(until: self.now + duration)
  }

  mutating func pass(until time: Duration) throws {
    if let end = self.end, end.time < time { throw RandomEnd.Reached() }
    self.now = time
  }

  /// Whether a hedge may start after this delay.
  func mayHedge(after delay: Duration, limit: Int) -> Bool {
    if let end = self.end, end.isDeadline, self.now + delay >= end.time { return false }
    return self.hedgeCount + 1 < limit
  }

  mutating func startAttempt(isHedge: Bool = false) {
    if isHedge {
      self.attempt += 1
      self.hedgeCount += 1
    }
    self.attempts.append(self.attempt)
  }

  /// - Returns: The number of the stream, from 0.
  mutating func startStream(of hedge: Int? = nil) -> Int {
    self.announcements.append(hedge)
    return self.announcements.count - 1
  }

  /// The number of the attempt that was started last.
  var lastAttempt: Int { self.attempts.last ?? 0 }

  mutating func takeTransparentRetry() -> Bool {
    defer { self.hasRetriedTransparently = true }
    return !self.hasRetriedTransparently
  }
}

/// What is below all hooks in a model: the server, and hedging.
struct RandomServerModel {
  private struct Running {
    var stream: Int
    var due: Duration
    /// The number of attempts before it, for a hedge.
    let hedge: Int?
    var hasRetriedTransparently = false
  }

  private let server: RandomServer
  private let hedging: HedgingPolicy?
  var call: RandomCallState
  private(set) var events: [String] = []

  private var running: [Running] = []
  private var timer: Duration?
  /// Whether other attempts may start.
  private var isOpen = false

  init(_ server: RandomServer, hedging: HedgingPolicy?, call: RandomCallState) {
    self.server = server
    self.hedging = hedging
    self.call = call
  }

  /// Serves one request that has passed all hooks.
  ///
  /// - Returns: The outcome, and in ``events`` the streams that were started for it.
  mutating func serve() throws -> RandomOutcome {
    self.events = []
    self.running = []
    self.timer = nil
    self.isOpen = self.hedging != nil
    self.start(isHedge: false)
    while true {
      let next = self.running.indices.min { self.running[$0].due < self.running[$1].due }
      let due = next.map { self.running[$0].due }
      if let timer = self.timer, due.map({ timer <= $0 }) ?? true {
        try self.call.pass(until: timer)
        self.start(isHedge: true)
      } else if let next, let due {
        try self.call.pass(until: due)
        if let outcome = self.end(next) { return outcome }
      }
    }
  }

  private mutating func start(isHedge: Bool) {
    self.call.startAttempt(isHedge: isHedge)
    let hedge = isHedge ? self.call.lastAttempt - 1 : nil
    self.running.append(Running(stream: 0, due: .zero, hedge: hedge))
    self.startStream(of: self.running.count - 1)
    if let delay = self.hedging?.delay { self.schedule(after: delay) }
  }

  private mutating func startStream(of index: Int) {
    let stream = self.call.startStream(of: self.running[index].hedge)
    self.events.append("server \(stream)")
    self.running[index].stream = stream
    self.running[index].due = self.call.now + self.server.reply(to: stream).latency
  }

  private mutating func schedule(after delay: Duration) {
    let limit = min(self.hedging?.maximumAttempts ?? 1, 5)
    self.timer = nil
    if self.isOpen, self.call.mayHedge(after: delay, limit: limit) {
      self.timer = self.call.now + delay
    } else {
      self.isOpen = false
    }
  }

  /// - Returns: The outcome, if this decides it.
  private mutating func end(_ index: Int) -> RandomOutcome? {
    let stream = self.running[index].stream
    let reply = self.server.reply(to: stream).outcome
    if reply == .unprocessed, self.takeTransparentRetry(index) {
      self.startStream(of: index)
      return nil
    }
    self.running.remove(at: index)
    let code = reply == .failure ? Code.aborted : .unavailable
    guard reply != .fine else { return "ok server \(stream)" }
    guard let hedging = self.hedging, hedging.codes.contains(code) else { return "\(code) server \(stream)" }
    if self.isOpen {
      switch reply {
      case .errorWithDelay: self.schedule(after: .milliseconds(300))
      case .errorWithoutOther:
        self.isOpen = false
        self.timer = nil
      default: self.start(isHedge: true)
      }
    }
    return self.running.isEmpty && self.timer == nil ? "\(code) server \(stream)" : nil
  }

  private mutating func takeTransparentRetry(_ index: Int) -> Bool {
    guard self.running[index].hedge != nil else { return self.call.takeTransparentRetry() }
    defer { self.running[index].hasRetriedTransparently = true }
    return !self.running[index].hasRetriedTransparently
  }
}
