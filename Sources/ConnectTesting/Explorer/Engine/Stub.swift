internal import Connect

final class ExplorerRun: Sendable {
  let executor = VirtualExecutor()
  func step(_ name: String, canFail: Bool) async throws {}
  func makeToken() -> String { "token-1" }
  func note(_ text: String) {}
}

enum ExplorerThread {
  static func run<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value { try body() }
}

struct Exploration<Observed: Sendable>: Sendable {
  init(_ explorer: InterceptorExplorer<Observed>) {}
  func explore() throws -> ExplorationReport { ExplorationReport() }
  func replay(_ schedule: Schedule) throws {}
}
