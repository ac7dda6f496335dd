internal import Connect

/// Judges the endpoints of an origin by the calls of all channels to it. Each channel has its own executor.
///
/// The channels count by themselves. At the end of an interval they are asked for their counts, and told who is ejected.
///
/// `@unchecked Sendable`: all that changes is touched on `executor` alone. The functions for members hop.
final class SharedOutliers: @unchecked Sendable {
  private struct Member {
    weak var channel: (any OutlierMember)?
    var endpoints: [Endpoint.Identity]
  }

  private let executor: any CallExecutor
  private var random: SeededRandom
  private var members: [Member] = []
  /// Nil while no member has outlier detection.
  private var detector: OutlierDetector?
  /// The detector's names for the endpoints of all members.
  private var ids: [Endpoint.Identity: EndpointID] = [:]
  private var names = EndpointIDs()
  private var timer: (any CallTimer)?
  /// Distinguishes the answers of this interval from late ones.
  private var round = 0
  /// The first round of the present detector.
  private var firstRound = 1
  /// How many members have not yet given their counts of this round.
  private var awaited = 0

  init(on executor: any CallExecutor, seed: UInt64) {
    self.executor = executor
    self.random = SeededRandom(seed: seed)
  }

  deinit {
    guard let timer = self.timer else { return }
    self.executor.execute { timer.cancel() }
  }

  // MARK: - For members, on their executors

  /// Sets the member's endpoints. The member is told, at once or soon, which of them are ejected.
  func join(_ member: any OutlierMember, _ endpoints: [Endpoint.Identity], _ settings: OutlierDetection) {
    self.executor.run { self.update(member, endpoints, settings) }
  }

  /// The member has no outlier detection any more. It is told nothing more.
  func leave(_ member: any OutlierMember) {
    let id = ObjectIdentifier(member)
    self.executor.run {
      self.members.removeAll { $0.channel.map(ObjectIdentifier.init) == id }
      self.membersChanged()
    }
  }

  // MARK: - On the executor

  private func update(
    _ channel: any OutlierMember,
    _ endpoints: [Endpoint.Identity],
    _ settings: OutlierDetection
  ) {
    if let index = self.members.firstIndex(where: { $0.channel === channel }) {
      self.members[index].endpoints = endpoints
    } else {
      self.members.append(Member(channel: channel, endpoints: endpoints))
    }
    var detector = self.detector ?? OutlierDetector(settings)
    let changes =
      detector.configuration == settings ? [] : detector.configure(settings, now: self.executor.now)
    self.detector = detector
    let hasTold = self.membersChanged(changes)
    if !hasTold { self.tell(channel) }
  }

  /// - Returns: Whether all members were told who is ejected.
  @discardableResult
  private func membersChanged(_ earlier: [OutlierDetector.Change] = []) -> Bool {
    self.members.removeAll { $0.channel == nil }
    guard !self.members.isEmpty else {
      self.forget()
      return true
    }
    let changes = self.detector?.update(self.nameEndpoints(), now: self.executor.now) ?? []
    // While counts are collected, the timer limits how long that takes.
    if self.awaited == 0 { self.schedule() }
    guard !changes.isEmpty || !earlier.isEmpty else { return false }
    self.tellAll()
    return true
  }

  private func forget() {
    self.detector = nil
    self.ids = [:]
    self.names.releaseAll()
    // Counts that are still on their way are dropped.
    self.round += 1
    self.firstRound = self.round + 1
    self.awaited = 0
    self.schedule()
  }

  /// The endpoints of all members, each once.
  private func nameEndpoints() -> [EndpointID] {
    var known: [Endpoint.Identity: EndpointID] = [:]
    swap(&known, &self.ids)
    var list: [EndpointID] = []
    for endpoint in self.members.lazy.flatMap(\.endpoints) where self.ids[endpoint] == nil {
      let id = known.removeValue(forKey: endpoint) ?? self.names.make()
      self.ids[endpoint] = id
      list.append(id)
    }
    for id in known.values { self.names.release(id) }
    return list
  }

  // MARK: - Intervals

  private func schedule() {
    self.timer?.cancel()
    self.timer = self.detector?.nextTick.map { self.schedule(after: $0 - self.executor.now) }
  }

  private func schedule(after delay: Duration) -> any CallTimer {
    self.executor.schedule(after: max(delay, .zero)) { [weak self] in self?.tick() }
  }

  private func tick() {
    // A member that has not answered within an interval is not waited for.
    guard self.awaited == 0, let interval = self.detector?.configuration.interval else {
      self.judge()
      return
    }
    self.timer = self.schedule(after: interval)
    let channels = self.members.compactMap(\.channel)
    guard !channels.isEmpty else {
      self.membersChanged()
      return
    }
    self.round += 1
    self.awaited = channels.count
    let round = self.round
    for channel in channels {
      channel.executor.run {
        let outcomes = channel.takeOutcomes()
        self.executor.run { self.received(outcomes, in: round) }
      }
    }
  }

  private func received(_ counts: [(endpoint: Endpoint.Identity, outcomes: CallOutcomes)], in round: Int) {
    guard round >= self.firstRound else { return }
    for (endpoint, outcomes) in counts {
      guard let id = self.ids[endpoint] else { continue }
      self.detector?.record(id, successes: outcomes.successes, failures: outcomes.failures)
    }
    guard round == self.round, self.awaited > 0 else { return }
    self.awaited -= 1
    if self.awaited == 0 { self.judge() }
  }

  private func judge() {
    self.awaited = 0
    let changes = self.detector?.tick(now: self.executor.now, random: &self.random) ?? []
    self.schedule()
    if !changes.isEmpty { self.tellAll() }
  }

  // MARK: - Verdicts

  private func tellAll() {
    let ejected = self.ejected
    for channel in self.members.compactMap(\.channel) { self.tell(channel, ejected) }
  }

  private func tell(_ channel: any OutlierMember) { self.tell(channel, self.ejected) }

  private func tell(_ channel: any OutlierMember, _ ejected: Set<Endpoint.Identity>) {
    channel.executor.run { channel.setEjected(ejected) }
  }

  private var ejected: Set<Endpoint.Identity> {
    guard let detector = self.detector, detector.ejectedCount > 0 else { return [] }
    return Set(self.ids.lazy.filter { detector.isEjected($0.value) }.map(\.key))
  }
}
