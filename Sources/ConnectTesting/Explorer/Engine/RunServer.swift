internal import Connect
internal import NIOCore

/// The server of a run: its attempts.
///
/// Confined to the thread of the exploration.
final class RunServer {
  private(set) var exchanges: [ExplorerExchange] = []
  /// Attempts that no call of the explorer has made.
  private var foreign: [ExploredAttempt] = []

  /// Whether the server leaves somebody without an end of the answer.
  var keepsSomebodyWaiting: Bool { self.exchanges.contains { $0.isOpen && $0.isSilent } }

  /// The calls that wait for the end of an answer that never comes.
  var callsKeptWaiting: [Int] { self.exchanges.filter { $0.isOpen && $0.isSilent }.map { $0.attempt.call } }

  func begin(
    _ request: HTTPStreamRequest,
    _ handler: any HTTPStreamHandler,
    in run: ExplorerRun
  ) -> ExplorerExchange {
    let call = request.context[ExplorerCallKey.self]
    let number = self.exchanges.reduce(1) { $1.attempt.call == call ? $0 + 1 : $0 }
    let attempt = ExploredAttempt(
      call: call,
      number: number,
      order: self.exchanges.count,
      time: run.executor.now,
      headers: request.headers
    )
    let exchange = ExplorerExchange(attempt, request, handler, run)
    self.exchanges.append(exchange)
    run.log.cover("attempts")
    run.log.tell("attempt", call, "call \(call) sends attempt \(number)\(Self.shown(request.headers))")
    run.rules.check(begin: attempt, in: run)
    exchange.start()
    return exchange
  }

  /// The headers that say something, for the story.
  private static func shown(_ headers: Headers) -> String {
    let shown = headers.filter { field in
      !Self.usual.contains(field.name.lowercased()) && !field.name.lowercased().hasPrefix("connect-")
    }
    guard !shown.isEmpty else { return "" }
    return " with " + shown.map { "\($0.name): \($0.value)" }.joined(separator: ", ")
  }

  private static let usual: Set<String> = [
    "content-type", "accept-encoding", "user-agent", "te", "content-encoding", "content-length",
  ]

  /// The attempts of a call, in the order of their beginnings.
  func attempts(of call: Int) -> [ExploredAttempt] {
    self.exchanges.compactMap { $0.attempt.call == call ? $0.attempt : nil }
  }

  /// Nothing answers any more.
  func end() {
    for exchange in self.exchanges { exchange.abandon() }
  }
}
