package import ConnectTesting

/// Interceptors, and how a test would explore them.
package struct ExplorationCase: Sendable {
  /// The name of the interceptor.
  package let name: String
  /// Where users have reported the bug, for planted bugs; empty for correct interceptors.
  package let source: String
  private let run: @Sendable (_ schedules: Int, _ seed: UInt64) async throws -> ExplorationReport
  private let runAgain: @Sendable (_ schedule: String) async throws -> Void

  init<Observed>(_ name: String, source: String = "", _ explorer: InterceptorExplorer<Observed>) {
    self.name = name
    self.source = source
    self.run = { try await explorer.quiet().schedules($0).seed($1).explore() }
    self.runAgain = { try await explorer.quiet().replay($0) }
  }

  /// Explores the interceptors in so many schedules.
  ///
  /// - Throws: `ExplorationFailure` if a rule is broken.
  package func explore(schedules: Int = 1_000, seed: UInt64 = 1) async throws -> ExplorationReport {
    try await self.run(schedules, seed)
  }

  /// Runs one schedule again.
  package func replay(_ schedule: String) async throws {
    try await self.runAgain(schedule)
  }
}
