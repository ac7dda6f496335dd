internal import Connect
internal import ConnectChannels

/// Which schedules are tried, in which order: the boring one, each single deviation, and then further deviations from
/// schedules in which something new happened, and random schedules. Kinds of choices take turns.
///
/// With several calls, single deviations are also those from a second scene: each call begins after the end of the one before. What a
/// call leaves behind for the next one would need two deviations otherwise, at two places that have nothing to do with each other.
struct SearchPlan {
  struct Parent {
    let schedule: Schedule
    /// Where `kinds` begins: the choice after the last deviation.
    let start: Int
    /// The kinds of options of each choice from `start` on.
    let kinds: [[ChoiceKind]]
  }

  let method: StreamType
  private var random: SeededRandom
  private var hasBegun = false
  /// The scene of calls one after the other, until it was tried.
  private var nextScene: Schedule?
  private var sceneUnderWay: Schedule?
  /// Single deviations from scenes that were not tried, by scene and kind, the next ones last.
  private var singles: [[Schedule]] = []
  private var singleCount = 0
  private(set) var parents: [Parent] = []
  private(set) var tried: Set<Schedule> = []
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
    if let scene = self.nextScene.take() {
      self.sceneUnderWay = scene
      return Chooser(scene)
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
    self.singleCount += 1
    let place = self.singleCount % self.singles.count
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
    self.makeSingles(schedule, points)
    guard isNew, schedule.deviations.count <= 6, self.parents.count < Self.maximumParents else { return }
    let start = (schedule.deviations.last?.choice ?? -1) + 1
    guard start < points.count else { return }
    let kinds = points[start...].prefix(Self.maximumPoints).map(\.kinds)
    self.parents.append(Parent(schedule: schedule, start: start, kinds: kinds))
  }

  /// If the schedule is a scene that was tried for the first time, its single deviations are next.
  private mutating func makeSingles(_ schedule: Schedule, _ points: [Chooser.Point]) {
    if schedule.deviations.isEmpty, self.tried.insert(schedule).inserted {
      let begins = points.indices.filter { points[$0].kinds.first == .begin }
      let turns = Schedule(
        method: self.method,
        deviations: begins.map { Schedule.Deviation(choice: $0, option: RunCallers.optionOfTurns) }
      )
      if self.tried.insert(turns).inserted { self.nextScene = turns }
      self.makeSingles(from: schedule, points, ChoiceKind.allCases)
    } else if let scene = self.sceneUnderWay.take(), scene == schedule {
      // Orders of work matter most where calls are at work at the same time. Here they would use up the schedules.
      self.makeSingles(
        from: scene,
        points,
        ChoiceKind.allCases.filter { ![.order, .postponement, .begin].contains($0) }
      )
    }
  }

  private mutating func makeSingles(from scene: Schedule, _ points: [Chooser.Point], _ kinds: [ChoiceKind]) {
    var singles: [ChoiceKind: [Schedule.Deviation]] = [:]
    for (choice, point) in points.enumerated() {
      for (index, kind) in point.kinds.enumerated() {
        singles[kind, default: []].append(Schedule.Deviation(choice: choice, option: index + 1))
      }
    }
    for kind in kinds {
      guard var deviations = singles[kind] else { continue }
      deviations.shuffle(using: &self.random)
      let schedules = deviations.suffix(Self.maximumSingles).compactMap { deviation in
        var schedule = scene
        let place = schedule.deviations.firstIndex { $0.choice > deviation.choice }
        schedule.deviations.insert(deviation, at: place ?? schedule.deviations.endIndex)
        return self.tried.insert(schedule).inserted ? schedule : nil
      }
      if !schedules.isEmpty { self.singles.append(schedules) }
    }
  }
}
