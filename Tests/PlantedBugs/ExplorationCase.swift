package import ConnectTesting

/// Interceptors, and how a test would explore them.
package struct ExplorationCase: Sendable {
  private typealias Run =
    @Sendable (
      _ variant: Variant, _ schedules: Int, _ seed: UInt64, _ witness: Witness
    ) async throws -> ExplorationReport

  /// What is explored.
  private enum Variant {
    case itself
    case mended
    /// Without the interceptor at a place of the chain.
    case without(Int)
  }

  /// The name of the interceptor.
  package let name: String
  /// Where users have reported the bug, for planted bugs; empty for correct interceptors.
  package let source: String
  /// The rules that say what the bug does. The bug counts as found only if one of them is broken. Empty for correct interceptors.
  package let rules: [String]
  /// The interceptors: those of the transport, and then those of the chain, outermost first.
  package let chain: [String]
  /// What the interceptors of the chain are there for. Each is to happen in at least one schedule.
  package let works: [String]
  private let run: Run
  private let runAgain: @Sendable (_ schedule: String) async throws -> Void

  /// An interceptor with a bug, or without one.
  ///
  /// - Parameters:
  ///   - rules: See ``rules``. They are written from the description of the bug, not from what the explorer finds.
  init<Observed>(
    _ name: String,
    source: String = "",
    breaking rules: [String] = [],
    _ explorer: InterceptorExplorer<Observed>
  ) {
    self.init(name, source: source, breaking: rules, [name], doing: []) { _, _ in explorer }
  }

  /// An interceptor with a bug that can be mended, so that the rules can be tried on one without it.
  ///
  /// - Parameters:
  ///   - rules: See ``rules``.
  ///   - explorer: Explores the interceptor with its bug, or mended.
  init<Observed>(
    _ name: String,
    source: String,
    breaking rules: [String],
    _ explorer: @escaping @Sendable (_ isMended: Bool) -> InterceptorExplorer<Observed>
  ) {
    self.init(name, source: source, breaking: rules, [name], doing: []) { isMended, _ in explorer(isMended) }
  }

  /// A chain without bugs that tells what its interceptors do.
  ///
  /// - Parameters:
  ///   - name: What the chain is called; nil for the names of its interceptors.
  ///   - chain: See ``chain``.
  ///   - works: See ``works``.
  ///   - explorer: Its rules tell the witness of each of the works when they see it.
  init<Observed>(
    named name: String? = nil,
    _ chain: [String],
    doing works: [String],
    _ explorer: @escaping @Sendable (Witness) -> InterceptorExplorer<Observed>
  ) {
    let name = name ?? chain.joined(separator: " and ")
    self.init(name, source: "", breaking: [], chain, doing: works) { _, witness in explorer(witness) }
  }

  private init<Observed>(
    _ name: String,
    source: String,
    breaking rules: [String],
    _ chain: [String],
    doing works: [String],
    _ explorer: @escaping @Sendable (_ isMended: Bool, Witness) -> InterceptorExplorer<Observed>
  ) {
    self.name = name
    self.source = source
    self.rules = rules
    self.chain = chain
    self.works = works
    self.run = { variant, schedules, seed, witness in
      let explored =
        switch variant {
        case .itself: explorer(false, witness)
        case .mended: explorer(true, witness)
        case .without(let place): explorer(false, witness).withoutPart(at: place)
        }
      return try await explored.quiet().schedules(schedules).seed(seed).explore()
    }
    self.runAgain = { try await explorer(false, Witness()).quiet().replay($0) }
  }

  /// Explores the interceptors in so many schedules.
  ///
  /// - Throws: `ExplorationFailure` if a rule is broken.
  package func explore(schedules: Int = 1_000, seed: UInt64 = 1) async throws -> ExplorationReport {
    try await self.run(.itself, schedules, seed, Witness())
  }

  /// Explores the interceptor without its bug, with the same rules. For bugs that can be mended.
  ///
  /// - Throws: `ExplorationFailure` if a rule is broken.
  package func exploreMended(schedules: Int = 1_000, seed: UInt64 = 1) async throws -> ExplorationReport {
    try await self.run(.mended, schedules, seed, Witness())
  }

  /// Explores the interceptors, perhaps without one of them.
  ///
  /// - Parameter place: Which interceptor of ``chain`` is taken out; nil for none.
  /// - Returns: The ``works`` that happened in no schedule.
  /// - Throws: `ExplorationFailure` if a rule is broken.
  package func missingWorks(schedules: Int, without place: Int? = nil) async throws -> [String] {
    let witness = Witness()
    _ = try await self.run(place.map { .without($0) } ?? .itself, schedules, 1, witness)
    return self.works.filter { !witness.hasSeen($0) }
  }

  /// Runs one schedule again.
  package func replay(_ schedule: String) async throws {
    try await self.runAgain(schedule)
  }

  /// Whether a broken rule is one that says what the bug does.
  package func isBug(_ failure: ExplorationFailure) -> Bool { self.rules.contains(failure.rule) }
}
