public import Foundation

/// What a ``StormCheck`` has found.
public struct StormResult: Sendable, Hashable, Codable {
  /// How many retries a caller may make: `retryThrottling` of its service config (gRFC A6).
  public struct Budget: Sendable, Hashable, Codable {
    /// The caller.
    public var from: String
    /// The service that it calls.
    public var to: String
    /// The size of the bucket.
    public var maxTokens: Int
    /// What a success adds.
    public var tokenRatio: Double
  }

  /// The way to the service that has it worst, from a service that nobody calls.
  public var path: [String]
  /// How many times more requests that service may get than without retries, by the attempts alone.
  public var amplification: Double
  /// The same with the budgets that the map has, in the long run.
  public var amplificationWithBudgets: Double
  /// The code that the service fails with in the simulation.
  public var failure = "unavailable"
  /// How many times more requests it gets when it fails, simulated with the budgets that the map has; nil if one call makes too many
  /// requests to simulate.
  public var simulated: Double?
  /// Budgets that hold the amplification below ``StormCheck/limit``; empty if none are needed.
  public var budgets: [Budget] = []
  /// How many times more requests it gets with ``budgets``; nil if none are needed.
  public var simulatedWithProposal: Double?
  /// Deadlines that cannot be met, in words.
  public var deadlines: [String]
  /// The seed of the simulation.
  public var seed: UInt64
  /// See ``SimulationReport/violations``.
  public var violations: [String] = []

  init(
    path: [String],
    amplification: Double,
    amplificationWithBudgets: Double,
    deadlines: [String],
    seed: UInt64
  ) {
    self.path = path
    self.amplification = amplification
    self.amplificationWithBudgets = amplificationWithBudgets
    self.deadlines = deadlines
    self.seed = seed
  }

  /// Whether the load may grow by more than ``StormCheck/limit``, or a deadline cannot be met.
  public var isStorm: Bool {
    max(self.amplificationWithBudgets, self.simulated ?? 1) > StormCheck.limit || !self.deadlines.isEmpty
  }

  /// The result as JSON, sorted.
  ///
  /// - Throws: The error of `JSONEncoder`.
  public func json() throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    return try encoder.encode(self)
  }
}

extension StormResult: CustomStringConvertible {
  public var description: String {
    var lines = [
      "worst way        \(self.path.joined(separator: " -> "))",
      "attempts         \(Plot.number(self.amplification)) times the load if \(self.path.last ?? "it") fails",
    ]
    if self.amplificationWithBudgets < self.amplification {
      lines.append("with budgets     \(Plot.number(self.amplificationWithBudgets)) times in the long run")
    }
    if let simulated = self.simulated {
      let what = "each call of \(self.path.last ?? "it") fails with \(self.failure)"
      lines.append("simulated        \(Plot.number(simulated)) times: \(what)")
    } else {
      lines.append("simulated        no: one call makes too many requests")
    }
    if let proposal = self.simulatedWithProposal {
      lines += ["", "proposed budgets, simulated: \(Plot.number(proposal)) times"]
      for budget in self.budgets {
        lines.append(
          "  \("\(budget.from) -> \(budget.to)".padded(to: 30))\"retryThrottling\": "
            + "{ \"maxTokens\": \(budget.maxTokens), \"tokenRatio\": \(budget.tokenRatio) }"
        )
      }
    }
    if !self.deadlines.isEmpty {
      lines += ["", "deadlines"]
      lines += self.deadlines.map { "  \($0)" }
    }
    lines += ["", "seed \(self.seed)"]
    lines += self.violations.map { "VIOLATION  \($0)" }
    return lines.joined(separator: "\n")
  }
}
