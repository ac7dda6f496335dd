internal import Connect
internal import ConnectTesting

/// The state of a run's calls, servers and faults, as far as the checks need it.
///
/// `@unchecked Sendable`: used on the simulation's executor, and before and after the run.
final class Ledger: @unchecked Sendable {
  private let clock: VirtualClock
  private(set) var problems: [String] = []
  /// The codes of failed calls.
  private(set) var codes: Set<Code> = []
  private(set) var longest = Duration.zero
  /// The age of the oldest answer that a call received.
  private(set) var oldestAnswer = Duration.zero
  /// The number of calls that began within the first five seconds, when some servers may not be connected yet.
  private(set) var earlyCalls = 0
  /// The number of the token that servers accept.
  var validToken = 1
  /// Whether each call has a unique text.
  var textsAreUnique = true
  /// Whether the servers' health decides which server is picked.
  var heedsHealth = false

  /// The number of requests that servers received, by call.
  private var requests: [String: Int] = [:]
  private var starts: [String: Duration] = [:]
  private var ends: [String: Duration] = [:]
  private var namedServers: Set<Int>
  private var namedSince = Duration.seconds(-1)
  /// The servers of the client's zone, and since when all calls have to go there; nil if the model does not know.
  var home: (servers: Set<Int>, since: Duration)?
  /// The requests of calls since then: those that stayed, and those that left the zone.
  private(set) var homeRequests = 0
  private(set) var strayedRequests = 0
  /// Whether clusters prefer the servers of the client's zone; these servers, or nil.
  var routedHome: Set<Int>?
  /// Since when all servers are connected, and shares are exact.
  var settledSince = Duration.seconds(5)
  /// The requests of calls that began since then, by server.
  private(set) var settledRequests: [Int: Int] = [:]
  private var routing: (step: Scenario.RoutingStep, since: Duration)?
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

  /// The name now resolves to these servers.
  func named(_ servers: [Int]) {
    self.namedServers = Set(servers)
    self.namedSince = self.now
  }

  /// Calls go by these routes now.
  func routed(_ step: Scenario.RoutingStep) {
    self.named(step.routed.sorted())
    self.routing = (step, self.now)
  }

  func health(of server: Int, isGood: Bool) {
    self.unhealthySince[server] = isGood ? nil : self.now
  }

  // MARK: Calls

  /// - Returns: The time when the call began.
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

  /// - Parameter time: The time when a server made the answer.
  func callWasAnswered(at time: Duration) { self.oldestAnswer = max(self.oldestAnswer, self.now - time) }

  func settledRequests(of servers: Set<Int>) -> Int {
    servers.reduce(0) { $0 + (self.settledRequests[$1] ?? 0) }
  }

  var mostRequests: Int { self.requests.values.max() ?? 0 }

  // MARK: Servers

  /// A server has received a request, and may still refuse it.
  func requestArrived(of call: String) { self.requests[call, default: 0] += 1 }

  /// A server's handler has received a request.
  ///
  /// - Parameter mayBeAbandoned: Whether the request may belong to a call that has ended.
  func requestCame(_ text: String, to server: Int, mayBeAbandoned: Bool) {
    guard self.textsAreUnique, let start = self.starts[text] else { return }
    if !mayBeAbandoned, let end = self.ends[text], self.now > end {
      self.problem("server \(server) got a request of call \(text), which had ended at \(end)")
    }
    if start > self.namedSince, !self.namedServers.contains(server) {
      self.problem("call \(text) went to server \(server), for which the name does not stand any more")
    }
    if let (step, since) = self.routing, start > since, !step.servers(for: text).contains(server) {
      self.problem("call \(text) went to server \(server), though the routes say otherwise since \(since)")
    }
    if start > self.settledSince { self.settledRequests[server, default: 0] += 1 }
    if let isHome = self.isHome(server, text, start) {
      if isHome { self.homeRequests += 1 } else { self.strayedRequests += 1 }
    }
    // By then, every health watch has received the change.
    if self.heedsHealth, let since = self.unhealthySince[server], start > since + .seconds(5) {
      self.problem("call \(text) went to server \(server), which is not healthy since \(since)")
    }
  }
  /// Whether a server is in the client's zone; nil if a call may go elsewhere.
  private func isHome(_ server: Int, _ text: String, _ start: Duration) -> Bool? {
    if let home = self.home, start > home.since { return home.servers.contains(server) }
    // A new cluster connects first.
    guard let routedHome, let (step, since) = self.routing, start > since + .seconds(2) else { return nil }
    return step.isHome(server, for: text, routedHome)
  }
}
