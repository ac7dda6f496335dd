/// One attempt to connect to an address over QUIC and TCP: who begins when, who wins, and what the outcome says about
/// HTTP/3. Events go in, actions come out; it does no I/O and knows no clock.
///
/// QUIC begins. TCP begins after a delay, or as soon as QUIC has failed. The first that is ready wins. If QUIC wins,
/// TCP is given up. If TCP wins, QUIC goes on beside the connection until QUIC is ready or has failed: a slow start is
/// no failure, and the result is worth knowing. If TCP fails, QUIC has little time left. A server that is down is then
/// known to be down about as soon as without HTTP/3.
///
/// With early data, QUIC takes calls before its server has shown that it is there. It then has the attempt's place, and
/// the race goes on. If TCP is ready before the server has answered, TCP takes the place, and QUIC is tried again beside
/// it, without early data.
struct VersionRace: Sendable {
  enum Transport: Sendable, Hashable {
    case quic, tcp
  }

  enum Wait: Sendable, Hashable {
    /// TCP waits for QUIC.
    case headStart
    /// The attempt waits for QUIC, after TCP has failed.
    case gracePeriod
  }

  enum Action: Sendable, Hashable {
    case begin(Transport)
    case abandon(Transport)
    /// Call ``timerFired()`` once the wait is over. No other timer is pending then.
    case schedule(Wait)
    case cancelTimer
    /// This transport's connection becomes the attempt's connection. Comes at most once.
    case win(Transport)
    /// TCP is ready while QUIC, which has won by early data, is still unproven: TCP takes its place. QUIC's calls are
    /// made again. Call ``didReplaceQUIC()`` then.
    case replaceQUIC
    /// QUIC is ready after TCP has won: calls should use QUIC.
    case replaceTCP
    /// There is no connection. Comes once at most.
    case fail
    /// HTTP/3 has failed, though TCP works.
    case isBroken
    /// QUIC was given up without a verdict, because the TCP connection took no more calls. TCP had won in spite of
    /// QUIC's head start.
    case isUnjudged
  }

  private enum State {
    /// Has not begun.
    case waiting
    case trying
    /// Takes calls, though its server has not answered yet. Of QUIC only.
    case early
    case ready
    case failed
    /// The transport is no longer wanted.
    case over
  }

  private var quic = State.waiting
  private var tcp = State.waiting
  private var isTimerPending = false
  private var hasHeadStart = false

  mutating func start() -> [Action] {
    self.quic = .trying
    self.hasHeadStart = true
    self.isTimerPending = true
    return [.begin(.quic), .schedule(.headStart)]
  }

  /// Starts QUIC beside an open TCP connection.
  mutating func startUpgrade() -> [Action] {
    self.tcp = .ready
    self.quic = .trying
    return [.begin(.quic)]
  }

  mutating func timerFired() -> [Action] {
    guard self.isTimerPending else { return [] }
    self.isTimerPending = false
    guard self.tcp == .failed else { return self.beginTCP() }
    guard self.quic == .trying else { return [] }
    self.quic = .over
    return [.abandon(.quic), .fail]
  }

  /// QUIC takes calls by early data: its server has not answered yet. That is no reason to leave TCP, or to believe that
  /// the server is there where TCP has failed.
  mutating func early() -> [Action] {
    guard self.quic == .trying, self.tcp == .waiting || self.tcp == .trying else { return [] }
    self.quic = .early
    return [.win(.quic)]
  }

  /// TCP has taken the place of QUIC.
  mutating func didReplaceQUIC() -> [Action] {
    guard self.quic == .over, self.tcp == .ready else { return [] }
    self.quic = .trying
    return [.begin(.quic)]
  }

  /// The transport's connection can take calls, and its server has answered.
  mutating func ready(_ transport: Transport) -> [Action] {
    switch transport {
    case .quic:
      let wasEarly = self.quic == .early
      guard wasEarly || self.quic == .trying else { return [] }
      self.quic = .ready
      if self.tcp == .ready { return [.replaceTCP] }
      var actions = self.cancelTimer()
      if self.tcp == .trying { actions.append(.abandon(.tcp)) }
      self.tcp = .over
      // Otherwise it has won before.
      return wasEarly ? actions : actions + [.win(.quic)]
    case .tcp:
      guard self.tcp == .trying else { return [] }
      self.tcp = .ready
      if self.quic == .early {
        self.quic = .over
        return [.replaceQUIC]
      }
      return [.win(.tcp)] + (self.quic == .failed ? [.isBroken] : [])
    }
  }

  mutating func failed(_ transport: Transport) -> [Action] {
    switch transport {
    case .quic:
      guard self.quic == .trying else { return [] }
      self.quic = .failed
      switch self.tcp {
      case .waiting: return self.cancelTimer() + self.beginTCP()
      case .ready: return [.isBroken]
      case .failed: return self.cancelTimer() + [.fail]
      case .trying, .early, .over: return []
      }
    case .tcp:
      guard self.tcp == .trying else { return [] }
      self.tcp = .failed
      // An early connection has its own limit.
      if self.quic == .early { return [] }
      guard self.quic == .trying else { return [.fail] }
      self.isTimerPending = true
      return [.schedule(.gracePeriod)]
    }
  }

  /// Gives up the transports that are still trying.
  mutating func abandon() -> [Action] {
    var actions = self.cancelTimer()
    // An early connection is not the race's any more.
    if self.quic == .trying { actions.append(.abandon(.quic)) }
    if self.tcp == .trying { actions.append(.abandon(.tcp)) }
    self.quic = .over
    self.tcp = .over
    return actions
  }

  /// The connection that has won takes no more calls.
  mutating func winnerEnded() -> [Action] {
    let isUnjudged = self.hasHeadStart && self.tcp == .ready && self.quic == .trying
    return self.abandon() + (isUnjudged ? [.isUnjudged] : [])
  }

  private mutating func beginTCP() -> [Action] {
    guard self.tcp == .waiting else { return [] }
    self.tcp = .trying
    return [.begin(.tcp)]
  }

  private mutating func cancelTimer() -> [Action] {
    guard self.isTimerPending else { return [] }
    self.isTimerPending = false
    return [.cancelTimer]
  }
}
