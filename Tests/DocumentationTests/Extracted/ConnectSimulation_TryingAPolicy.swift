// Extracted from Sources/ConnectSimulation/ConnectSimulation.docc/TryingAPolicy.md by `make generate`.

import ConnectChannels
import ConnectSimulation

private func ConnectSimulation_TryingAPolicy_1() async throws {
  func isSafe(_ log: String, _ policy: String) async throws -> Bool {
    var question = WhatIf(
      FittedService(try TrafficTrace(contentsOf: log)),
      new: try ServiceConfig(json: policy),
      changes: [.slow(server: 1, by: 5), .load(times: 1.5)]
    )
    question.seedCount = 5
    let result = try await question.run()
    print(result)
    guard let now = result["now, changed"], let new = result["new, changed"] else { return false }
    return new.successRate >= now.successRate && new.attemptsPerCall < 1.2
  }
}
