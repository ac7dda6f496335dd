internal import DequeModule

/// Hands a stream's results to whoever waits for them, and asks the call for one at a time.
///
/// Most streams have one reader and at most one result that waits, for which there are stored properties. Further ones
/// wait in an object that is made on demand: a check of a queue would cost more than all other work here.
///
/// Confined to the call's executor.
final class ResultQueue {
  typealias Continuation = UnsafeContinuation<ResultPart?, Never>

  /// Results and readers behind the first ones.
  private final class Others {
    var results: Deque<ResultPart> = []
    var waiting: Deque<Continuation> = []
  }

  /// The first result that nobody has taken.
  private var result: ResultPart?
  /// The reader that has waited longest.
  private var waiting: Continuation?
  private var others: Others?
  /// How many results were requested from the call and have not arrived yet.
  private var askedCount = 0
  private var isComplete = false

  func receive(_ result: ResultPart) {
    self.askedCount -= 1
    if let waiting = self.takeWaiting() {
      waiting.resume(returning: result)
    } else if self.result == nil {
      self.result = result
    } else {
      self.makeOthers().results.append(result)
    }
    guard result.isEnd else { return }
    self.isComplete = true
    while let waiting = self.takeWaiting() { waiting.resume(returning: nil) }
  }

  /// The next result, if it can be had without waiting and nobody else waits for it.
  func poll(_ side: StreamSide, _ call: Call) -> ResultPart? {
    guard self.waiting == nil else { return nil }
    if self.result == nil, !self.isComplete { self.ask(for: 1, side, call) }
    return self.takeResult()
  }

  /// Gives the next result to `continuation`; nil behind the end.
  func wait(_ continuation: Continuation, _ side: StreamSide, _ call: Call) {
    if let result = self.takeResult() {
      continuation.resume(returning: result)
    } else if self.isComplete {
      continuation.resume(returning: nil)
    } else {
      if self.waiting == nil {
        self.waiting = continuation
      } else {
        self.makeOthers().waiting.append(continuation)
      }
      self.ask(for: 1 + (self.others?.waiting.count ?? 0), side, call)
    }
  }

  private func takeResult() -> ResultPart? {
    let result = self.result
    self.result = self.others?.results.popFirst()
    return result
  }

  private func takeWaiting() -> Continuation? {
    let waiting = self.waiting
    self.waiting = self.others?.waiting.popFirst()
    return waiting
  }

  private func makeOthers() -> Others {
    let others = self.others ?? Others()
    self.others = others
    return others
  }

  private func ask(for count: Int, _ side: StreamSide, _ call: Call) {
    guard self.askedCount < count else { return }
    self.askedCount += 1
    side.request(1, call)
  }
}
