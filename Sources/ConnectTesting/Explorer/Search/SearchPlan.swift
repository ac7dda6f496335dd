internal import Connect
internal import ConnectChannels

/// Which schedules are tried, in which order: the boring one, each single deviation, and then further deviations from
/// schedules in which something new happened, and random schedules. Kinds of choices take turns.
struct SearchPlan {
  private struct Parent {
    let schedule: Schedule
    /// Where `kinds` begins: the choice after the last deviation.
    let start: Int
    /// The kinds of options of each choice from `start` on.
    let kinds: [[ChoiceKind]]
  }

  let method: StreamType
  private var random: SeededRandom
  private var hasBegun = false
  /// Single deviations that were not tried, by kind, the next ones last.
  private var singles: [[Schedule]] = []
  private var parents: [Parent] = []
  private var tried: Set<Schedule> = []
  private var count = 0

  // Schedules of interceptors that do much have 20,000 choices. All of them would take gigabytes.
  private static let maximumParents = 600
  /// How many choices of a parent get another deviation.
  private static let maximumPoints = 500
  /// How many single deviations are tried, of each kind.
  private static let maximumSingles = 2_000

  init(_ method: StreamType, _ random: SeededRandom) {
    self.method = method
    self.random = random
  }

  /// The choices of the next schedule.
  mutating func next() -> Chooser {
    self.count += 1
    guard self.hasBegun else {
      self.hasBegun = true
      return Chooser(Schedule(method: self.method))
    }
    if let single = self.takeSingle() { return Chooser(single) }
    // Each third one is random.
    if !self.count.isMultiple(of: 3), let child = self.makeChild() { return Chooser(child) }
    let wildness = [0.3, 0.7, 1, 2][self.random.index(below: 4)]
    return Chooser(random: SeededRandom(seed: self.random.next()), wildness: wildness)
  }

  /// Kinds take turns, so that few schedules have something of each.
  private mutating func takeSingle() -> Schedule? {
    // After each four single deviations one of another sort, so that a long list does not use up all schedules.
    guard !self.singles.isEmpty, !self.count.isMultiple(of: 4) else { return nil }
    let place = self.count % self.singles.count
    let schedule = self.singles[place].popLast()
    if self.singles[place].isEmpty { self.singles.remove(at: place) }
    return schedule
  }

  /// A schedule of the corpus with one more deviation, behind its last one.
  private mutating func makeChild() -> Schedule? {
    guard !self.parents.isEmpty else { return nil }
    for _ in 0..<20 {
      let parent = self.parents[self.random.index(below: self.parents.count)]
      let kinds = Set(parent.kinds.joined()).sorted { $0.rawValue < $1.rawValue }
      guard !kinds.isEmpty else { continue }
      let kind = kinds[self.random.index(below: kinds.count)]
      let places = parent.kinds.indices.filter { parent.kinds[$0].contains(kind) }
      let place = places[self.random.index(below: places.count)]
      let options = parent.kinds[place].indices.filter { parent.kinds[place][$0] == kind }
      let option = options[self.random.index(below: options.count)] + 1
      var child = parent.schedule
      child.deviations.append(Schedule.Deviation(choice: parent.start + place, option: option))
      if self.tried.insert(child).inserted { return child }
    }
    return nil
  }

  /// - Parameters:
  ///   - schedule: What was chosen, with random choices.
  ///   - isNew: Whether nothing like it has happened before.
  mutating func didRun(_ schedule: Schedule, _ points: [Chooser.Point], isNew: Bool) {
    if schedule.deviations.isEmpty, self.singles.isEmpty, self.parents.isEmpty { self.makeSingles(points) }
    guard isNew, schedule.deviations.count <= 6, self.parents.count < Self.maximumParents else { return }
    let start = (schedule.deviations.last?.choice ?? -1) + 1
    guard start < points.count else { return }
    let kinds = points[start...].prefix(Self.maximumPoints).map(\.kinds)
    self.parents.append(Parent(schedule: schedule, start: start, kinds: kinds))
  }

  /// How many choices the corpus holds. For tests.
  var keptChoices: Int { self.parents.reduce(0) { $0 + $1.kinds.count } }

  /// How many schedules are known. For tests.
  var keptSchedules: Int { self.tried.count }

  private mutating func makeSingles(_ points: [Chooser.Point]) {
    var singles: [ChoiceKind: [Schedule.Deviation]] = [:]
    for (choice, point) in points.enumerated() {
      for (index, kind) in point.kinds.enumerated() {
        singles[kind, default: []].append(Schedule.Deviation(choice: choice, option: index + 1))
      }
    }
    for kind in ChoiceKind.allCases {
      guard var deviations = singles[kind] else { continue }
      deviations.shuffle(using: &self.random)
      let schedules = deviations.suffix(Self.maximumSingles).map {
        Schedule(method: self.method, deviations: [$0])
      }
      self.singles.append(schedules)
      self.tried.formUnion(schedules)
    }
  }
}
