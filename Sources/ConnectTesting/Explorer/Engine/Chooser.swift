internal import ConnectChannels

/// Makes the choices of one run, and remembers them: as a schedule says, and beyond it the boring ones, or random ones.
struct Chooser {
  /// A choice that was made. Option 0 is the boring one.
  struct Point {
    /// The kinds of options 1 and up.
    let kinds: [ChoiceKind]
    let option: Int
  }

  private var deviations: ArraySlice<Schedule.Deviation>
  private var random: SeededRandom?
  /// How wild a random run is: weights are multiplied by it.
  private let wildness: Double
  private(set) var points: [Point] = []
  /// Hears of deviations.
  var watch: ExplorationWatch?
  /// No choices are recorded any more.
  private(set) var isFrozen = false

  /// Makes the choices of a schedule, and then boring ones.
  init(_ schedule: Schedule) {
    self.deviations = schedule.deviations[...]
    self.wildness = 0
    self.points.reserveCapacity(128)
  }

  /// Makes random choices.
  init(random: SeededRandom, wildness: Double) {
    self.deviations = []
    self.random = random
    self.wildness = wildness
    self.points.reserveCapacity(128)
  }

  /// All later choices are boring.
  mutating func freeze() { self.isFrozen = true }

  /// Chooses among options of one kind.
  mutating func choose(_ kind: ChoiceKind, among count: Int) -> Int {
    guard count > 1 else { return 0 }
    return self.choose(Array(repeating: kind, count: count - 1))
  }

  /// - Parameter kinds: Of the options beside the boring one.
  /// - Returns: The option: 0, or the place in `kinds` plus 1.
  mutating func choose(_ kinds: [ChoiceKind]) -> Int {
    guard !self.isFrozen, !kinds.isEmpty else { return 0 }
    let option = self.option(kinds)
    if option > 0 { self.watch?.note(Schedule.Deviation(choice: self.points.count, option: option)) }
    self.points.append(Point(kinds: kinds, option: option))
    return option
  }

  private mutating func option(_ kinds: [ChoiceKind]) -> Int {
    if let next = self.deviations.first, next.choice == self.points.count {
      self.deviations.removeFirst()
      // The options may be others than when the schedule was found.
      return next.option <= kinds.count ? next.option : 0
    }
    guard var random = self.random else { return 0 }
    defer { self.random = random }
    for kind in ChoiceKind.allCases {
      let count = kinds.reduce(0) { $0 + ($1 == kind ? 1 : 0) }
      guard count > 0, random.fraction() < kind.weight * self.wildness else { continue }
      var place = random.index(below: count)
      for (index, other) in kinds.enumerated() where other == kind {
        if place == 0 { return index + 1 }
        place -= 1
      }
    }
    return 0
  }

  /// What was chosen, as a schedule.
  func schedule(_ schedule: Schedule) -> Schedule {
    Schedule(
      method: schedule.method,
      deviations: self.points.enumerated().compactMap { index, point in
        point.option > 0 ? Schedule.Deviation(choice: index, option: point.option) : nil
      }
    )
  }
}
