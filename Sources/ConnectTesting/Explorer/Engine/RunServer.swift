internal import Connect
internal import NIOCore

/// The server of a run: its attempts.
///
/// Confined to the thread of the exploration.
final class RunServer {
  private(set) var exchanges: [ExplorerExchange] = []
  private var answerCount = 0

  /// An answer goes to the client as a whole.
  ///
  /// - Returns: Its number, from 0.
  func countAnswer() -> Int {
    defer { self.answerCount += 1 }
    return self.answerCount
  }

  /// Attempts that wait for the end of an answer that never comes.
  var attemptsKeptWaiting: [ExploredAttempt] {
    self.exchanges.filter { $0.isOpen && $0.isSilent }.map(\.attempt)
  }

  func begin(
    _ request: HTTPStreamRequest,
    _ handler: any HTTPStreamHandler,
    in run: ExplorerRun
  ) -> ExplorerExchange {
    let call = request.context[ExplorerCallKey.self]
    let earlier = self.exchanges.filter { $0.attempt.call == call }
    let attempt = ExploredAttempt(
      call: call,
      number: earlier.count + 1,
      order: self.exchanges.count,
      overlapped: earlier.filter(\.isOpen).map(\.attempt.order),
      answersBefore: self.answerCount,
      time: run.executor.now,
      headers: request.headers
    )
    let exchange = ExplorerExchange(attempt, request, handler, run)
    self.exchanges.append(exchange)
    run.log.cover("attempts")
    run.log.tell(
      "attempt",
      call,
      "call \(call) sends attempt \(attempt.number)\(Self.shown(request.headers))"
    )
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
    return " with " + shown.map { "\($0.name): \(shortened($0.value))" }.joined(separator: ", ")
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

  /// What the server answers, and when.
  func chooseAnswer(to attempt: ExploredAttempt, in run: ExplorerRun) -> AnswerPlan {
    var answers = run.settings.server.answers(attempt)
    if answers.isEmpty { answers = [.ok] }
    let answer: ExplorerAnswer
    if let kept = run.rules.keptAnswer, kept.holds(for: attempt), answers.contains(kept.answer) {
      answer = kept.answer
    } else {
      let others = answers.count - 1
      // Each other answer comes once, for this attempt of each call, or from now on.
      let option = run.choose(.answer, among: 1 + others * 3)
      answer = option == 0 ? answers[0] : answers[(option - 1) % others + 1]
      if option > others {
        run.rules.keptAnswer = KeptAnswer(
          answer: answer,
          attempt: option > others * 2 ? nil : attempt.number
        )
      }
    }
    run.log.cover("answers: \(answer)")
    let times: [(Duration?, Duration?)] = [
      (nil, nil), (.milliseconds(20), nil), (.seconds(30), nil), (nil, .milliseconds(20)),
      (nil, .seconds(90)),
      (.seconds(90), nil),
    ]
    let (headDelay, restDelay) = times[run.choose(.answerTime, among: times.count)]
    if headDelay != nil || restDelay != nil { run.log.cover("answers that took long") }
    return AnswerPlan(answer: answer, headDelay: headDelay, restDelay: restDelay)
  }
}
