internal import Connect
internal import ConnectChannels

/// Which schedules are tried, in which order: the boring one, each single deviation, and then further deviations from
/// schedules in which something new happened, and random schedules. Kinds of choices take turns.
struct SearchPlan {
  private struct Parent {
    let schedule: Schedule
    /// The choices after its last deviation.
    let points: ArraySlice<Chooser.Point>
  }

  let method: StreamType
  private var random: SeededRandom
  private var hasBegun = false
  /// Single deviations that were not tried, by kind, the next ones last.
  private var singles: [[Schedule]] = []
  private var parents: [Parent] = []
  private var tried: Set<Schedule> = []
  private var count = 0

  private static let maximumParents = 600

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
      let kinds = Set(parent.points.flatMap(\.kinds)).sorted { $0.rawValue < $1.rawValue }
      guard !kinds.isEmpty else { continue }
      let kind = kinds[self.random.index(below: kinds.count)]
      let places = parent.points.indices.filter { parent.points[$0].kinds.contains(kind) }
      let place = places[self.random.index(below: places.count)]
      let options = parent.points[place].kinds.indices.filter { parent.points[place].kinds[$0] == kind }
      let option = options[self.random.index(below: options.count)] + 1
      var child = parent.schedule
      child.deviations.append(Schedule.Deviation(choice: place, option: option))
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
    if start < points.count { self.parents.append(Parent(schedule: schedule, points: points[start...])) }
  }

  private mutating func makeSingles(_ points: [Chooser.Point]) {
    var singles: [ChoiceKind: [Schedule]] = [:]
    for (choice, point) in points.enumerated() {
      for (index, kind) in point.kinds.enumerated() {
        let deviation = Schedule.Deviation(choice: choice, option: index + 1)
        singles[kind, default: []].append(Schedule(method: self.method, deviations: [deviation]))
      }
    }
    for kind in ChoiceKind.allCases {
      guard var schedules = singles[kind] else { continue }
      schedules.shuffle(using: &self.random)
      self.singles.append(schedules)
      self.tried.formUnion(schedules)
    }
  }
}
