internal import Connect
internal import ConnectTesting

/// What is known of the calls of a run, and of what they may meet.
///
/// `@unchecked Sendable`: touched on the simulation's executor, and before and behind the run.
final class Ledger: @unchecked Sendable {
  private let clock: VirtualClock
  private(set) var problems: [String] = []
  /// What calls have failed with.
  private(set) var codes: Set<Code> = []
  private(set) var longest = Duration.zero
  /// The age of the oldest answer that a call was given.
  private(set) var oldestAnswer = Duration.zero
  /// How many calls have begun within the first five seconds, in which not all servers may be connected yet.
  private(set) var earlyCalls = 0
  /// The number of the token that servers accept.
  var validToken = 1
  /// Whether each call has a text of its own.
  var textsAreUnique = true
  /// Whether the servers' health decides who is picked.
  var heedsHealth = false

  /// Requests that have come to servers, by call.
  private var requests: [String: Int] = [:]
  private var starts: [String: Duration] = [:]
  private var ends: [String: Duration] = [:]
  private var namedServers: Set<Int>
  private var namedSince = Duration.seconds(-1)
  private var unhealthySince: [Int: Duration] = [:]

  init(servers: Int, clock: VirtualClock) {
    self.namedServers = Set(0..<servers)
    self.clock = clock
  }

  var now: Duration { self.clock.now.offset }

  func problem(_ text: String) {
    if self.problems.count < 10 { self.problems.append("\(self.now): \(text)") }
  }

  // MARK: Troubles

  /// The name stands for these servers now.
  func named(_ servers: [Int]) {
    self.namedServers = Set(servers)
    self.namedSince = self.now
  }

  func health(of server: Int, isGood: Bool) {
    self.unhealthySince[server] = isGood ? nil : self.now
  }

  // MARK: Calls

  /// - Returns: When it began.
  func callBegan(_ text: String) -> Duration {
    if self.now < .seconds(5) { self.earlyCalls += 1 }
    self.starts[text] = self.now
    return self.now
  }

  func callEnded(_ text: String, since start: Duration, _ error: (any Error)?) {
    self.ends[text] = self.now
    self.longest = max(self.longest, self.now - start)
    if let error { self.codes.insert(ConnectError(error).code) }
  }

  /// - Parameter time: When a server has made the answer.
  func callWasAnswered(at time: Duration) { self.oldestAnswer = max(self.oldestAnswer, self.now - time) }

  var mostRequests: Int { self.requests.values.max() ?? 0 }

  // MARK: Servers

  /// A request has come to a server, which may refuse it.
  func requestArrived(of call: String) { self.requests[call, default: 0] += 1 }

  /// A server's handler has a request.
  ///
  /// - Parameter mayBeAbandoned: Whether it may be that of a call that has ended.
  func requestCame(_ text: String, to server: Int, mayBeAbandoned: Bool) {
    guard self.textsAreUnique, let start = self.starts[text] else { return }
    if !mayBeAbandoned, let end = self.ends[text], self.now > end {
      self.problem("server \(server) got a request of call \(text), which had ended at \(end)")
    }
    if start > self.namedSince, !self.namedServers.contains(server) {
      self.problem("call \(text) went to server \(server), for which the name does not stand any more")
    }
    // Whoever watches has heard of it by then.
    if self.heedsHealth, let since = self.unhealthySince[server], start > since + .seconds(5) {
      self.problem("call \(text) went to server \(server), which is not healthy since \(since)")
    }
  }
}
