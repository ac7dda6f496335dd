internal import Connect
internal import ConnectChannels
internal import ConnectSimulation
internal import SwiftProtobuf

/// A client that control planes configure, changes that lose no call, and faults of the control planes; all decided by a seed.
package struct MeshScenario: Sendable, CustomStringConvertible {
  /// A change of a resource.
  enum Change: Sendable {
    case clusters
    case endpoints
    case routes
    /// Endpoints that cannot be used, with a server that must get no call.
    case brokenEndpoints(String)
    /// A response that makes no sense.
    case nonsense(Int)
  }

  struct Step: Sendable, CustomStringConvertible {
    var time: Duration
    var changes: [Change]
    /// What the resources that change say from now on.
    var state: MeshState

    var description: String { "\(self.time): \(self.changes), \(self.state)" }
  }

  /// A fault of a control plane.
  enum Fault: Sendable {
    case crash
    case freeze
    case goAway
    case partition
  }

  struct Trouble: Sendable, CustomStringConvertible {
    var time: Duration
    var length: Duration
    var fault: Fault
    /// Which control plane.
    var index: Int

    var description: String {
      "\(self.time): \(self.fault) of control plane \(self.index) for \(self.length)"
    }
  }

  package let seed: UInt64
  /// The last one gets no calls.
  let servers: Int
  let controlPlanes: Int
  let usesInlineRoutes: Bool
  let delay: Duration
  let roundTrip: Duration
  let waitForReady: Bool
  let callsPerSecond: Double
  private(set) var steps: [Step] = []
  private(set) var troubles: [Trouble] = []

  /// By then all changes and faults are over, and everything is settled.
  var settled: Duration {
    let last = max(self.steps.last?.time ?? .zero, self.troubles.map { $0.time + $0.length }.max() ?? .zero)
    // A stream that failed several times is tried again after up to half a minute.
    return last + (self.troubles.isEmpty ? .seconds(2) : .seconds(40))
  }

  var duration: Duration { self.settled + .seconds(5) }

  package init(seed: UInt64) {
    var random = SeededRandom(seed: seed ^ 0x6d65_7368)
    self.seed = seed
    self.servers = 4 + random.index(below: 5)
    self.controlPlanes = 1 + random.index(below: 2)
    self.usesInlineRoutes = random.chance(0.3)
    self.delay = random.duration(.milliseconds(1) ... .milliseconds(800))
    self.roundTrip = random.duration(.zero ... .milliseconds(20))
    self.callsPerSecond = random.number(2...20)
    self.waitForReady = random.chance(0.5)
    let hasTroubles = random.chance(0.6)
    self.chooseSteps(&random, hasTroubles: hasTroubles)
    if hasTroubles { self.chooseTroubles(&random) }
  }

  // MARK: Changes

  private var lastServer: Int { self.servers - 1 }

  /// A server that is down all the time.
  var deadServer: Int { self.servers }

  private func group(_ random: inout SeededRandom) -> MeshState.Group {
    var chosen = (0..<self.lastServer).filter { _ in random.chance(0.4) }
    if chosen.isEmpty { chosen = [random.index(below: self.lastServer)] }
    let others = (0..<self.lastServer).filter { !chosen.contains($0) }
    let priorities = others.isEmpty || random.chance(0.6) ? [chosen] : [chosen, others]
    return MeshState.Group(servers: priorities, hasService: random.chance(0.5))
  }

  /// More than it takes until a client has all that a change needs.
  private var settlingTime: Duration { self.delay * 8 + .seconds(1) }

  private mutating func chooseSteps(_ random: inout SeededRandom, hasTroubles: Bool) {
    var state = MeshState()
    state.groups = ["v0": self.group(&random), "v1": self.group(&random)]
    (state.main, state.other) = ("v0", "v1")
    self.steps = [Step(time: .zero, changes: [.clusters, .endpoints, .routes], state: state)]
    var time = self.settlingTime + .seconds(3)
    for number in 2..<(2 + random.index(below: 6)) {
      func advance() { time += random.duration(.zero ... .seconds(3)) }
      advance()
      switch random.index(below: 5) {
      case 0:
        // Other servers of a cluster that is in use.
        let name = random.element([state.main, state.other])
        guard var group = state.groups[name] else { continue }
        let service = group.hasService
        group = self.group(&random)
        group.hasService = service
        state.groups[name] = group
        self.steps.append(Step(time: time, changes: [.endpoints], state: state))
      case 1:
        let name = random.element([state.main, state.other])
        guard state.groups[name] != nil, !hasTroubles else { continue }
        // Without good ones before, calls have no server.
        time += self.settlingTime
        self.steps.append(Step(time: time, changes: [.brokenEndpoints(name)], state: state))
        advance()
        self.steps.append(Step(time: time, changes: [.endpoints], state: state))
      case 2:
        self.steps.append(Step(time: time, changes: [.nonsense(random.index(below: 5))], state: state))
      default:
        self.replace("v\(number)", &state, &time, &random)
      }
    }
  }

  /// Routes lead to a new cluster, and leave an old one. What they need may come before or after them; what they leave goes later.
  private mutating func replace(
    _ name: String,
    _ state: inout MeshState,
    _ time: inout Duration,
    _ random: inout SeededRandom
  ) {
    let before = state
    state.groups[name] = self.group(&random)
    var target = name
    if random.chance(0.25) {
      target = "\(name)-all"
      state.aggregates[target] = [name, state.groups.keys.sorted()[0]]
    }
    let (main, other) = (state.main, state.other)
    (state.main, state.other) = random.chance(0.5) ? (other, target) : (target, main)
    state.share = random.chance(0.5) ? UInt32(random.index(below: 101)) : nil
    let used = state.used
    let left = [main, other].first { !used.contains($0) && state.groups[$0] != nil }
    let isDead = self.waitForReady && random.chance(0.5)
    let restored = isDead ? self.kill(left, before, &state, &time, &random) : nil
    var changes: [Change] = [.clusters, .endpoints, .routes]
    for index in changes.indices.dropFirst().reversed() {
      changes.swapAt(index, random.index(below: index + 1))
    }
    for change in changes {
      self.steps.append(Step(time: time, changes: [change], state: state))
      if random.chance(0.5) { time += random.duration(.zero ... .seconds(2)) }
    }
    if let left, let restored, random.chance(0.7) {
      // No route leads there any more. The calls that wait there hear of it.
      time += self.settlingTime
      state.groups[left] = restored
      self.steps.append(Step(time: time, changes: [.endpoints], state: state))
      time += self.settlingTime
    }
    time += random.duration(.zero ... .seconds(3))
    state.groups = state.groups.filter { used.contains($0.key) }
    state.aggregates = state.aggregates.filter { used.contains($0.key) }
    self.steps.append(Step(time: time, changes: [.clusters, .endpoints], state: state))
  }

  /// A cluster that routes will leave has a server that is down, so that calls wait there.
  ///
  /// - Returns: What it was before.
  private mutating func kill(
    _ left: String?,
    _ before: MeshState,
    _ state: inout MeshState,
    _ time: inout Duration,
    _ random: inout SeededRandom
  ) -> MeshState.Group? {
    guard let left, let group = before.groups[left] else { return nil }
    var before = before
    before.groups[left]?.servers = [[self.deadServer]]
    state.groups[left] = before.groups[left]
    self.steps.append(Step(time: time, changes: [.endpoints], state: before))
    time += self.settlingTime + random.duration(.zero ... .seconds(3))
    return group
  }

  private mutating func chooseTroubles(_ random: inout SeededRandom) {
    // The first call, which lets the client ask, and what it needs come before.
    let start = self.settlingTime + .seconds(5)
    let end = max(self.steps.last?.time ?? .zero, start)
    for _ in 0..<(1 + random.index(below: 4)) {
      self.troubles.append(
        Trouble(
          time: random.duration(start...end),
          // After 15 s of silence, what was asked for does not exist.
          length: random.duration(.milliseconds(100) ... .seconds(9)),
          fault: random.element([.crash, .freeze, .goAway, .partition]),
          index: random.index(below: self.controlPlanes)
        )
      )
    }
  }

  package var description: String {
    var text = "mesh seed \(self.seed): \(self.servers) servers, \(self.controlPlanes) control planes, "
    text += "responses within \(self.delay), \(self.usesInlineRoutes ? "routes in the listener, " : "")"
    text += "\(self.callsPerSecond) calls a second\(self.waitForReady ? " that wait" : "")"
    for step in self.steps { text += "\n  \(step)" }
    for trouble in self.troubles { text += "\n  \(trouble)" }
    return text
  }
}

extension MeshState {
  /// The clusters that routes lead to, with the parts of aggregates.
  var used: Set<String> {
    var used: Set<String> = []
    for name in [self.main, self.other] {
      used.insert(name)
      for part in self.aggregates[name] ?? [] { used.insert(part) }
    }
    return used
  }
}
