internal import DequeModule

extension PipelineOrder {
  /// A stage: what an interceptor has at one level, or the codec between the two levels.
  final class Stage {
    enum Form {
      case hooks(any StageHooks)
      case async(any AsyncStage)
      case codec
    }

    /// Nothing that the order looks at.
    let form: Form
    /// For messages.
    let interceptor: any Interceptor.Type
    /// Parts of the request that wait at its hook, or for room behind.
    var requests = HookWindow<RequestPart>()
    /// Whether there may be any.
    var keepsRequests = false
    /// Parts of the response that wait at its hook, or for room outside.
    var results = HookWindow<ResultPart>()
    /// Whether there may be any.
    var keepsResults = false
    /// Whether its hook has the request, or the stream's head, and has not passed it on.
    var holdsHead = false
    /// Whether the request went on inwards, so that the interceptor waits for a result.
    var hasPassedHead = false
    /// Whether the end has come here, or was put here by the hook.
    var isClosed = false
    /// Whether a result of this attempt has gone on outwards.
    var hasPassedOut = false

    init(_ form: Form, of interceptor: any Interceptor.Type) {
      self.form = form
      self.interceptor = interceptor
    }

    var isEmpty: Bool { !self.keepsRequests && !self.keepsResults }

    /// Looks again whether anything waits.
    func settle() {
      if self.keepsRequests, self.requests.isEmpty { self.keepsRequests = false }
      if self.keepsResults, self.results.isEmpty { self.keepsResults = false }
    }

    /// - Parameter keepsHead: Whether the interceptor still waits for a result, of a new attempt.
    /// - Returns: What waited.
    func reset(keepsHead: Bool) -> Kept? {
      self.holdsHead = false
      self.isClosed = false
      self.hasPassedOut = false
      if !keepsHead { self.hasPassedHead = false }
      guard !self.isEmpty else { return nil }
      let kept = Kept(requests: self.requests, results: self.results)
      self.requests = HookWindow()
      self.results = HookWindow()
      self.keepsRequests = false
      self.keepsResults = false
      return kept
    }
  }

  /// Parts that waited and were given up. They are released by whoever gets them: that may run code of users, which may come
  /// back.
  struct Kept {
    let requests: HookWindow<RequestPart>
    let results: HookWindow<ResultPart>
  }

  /// What was there when the call was over, to be released by whoever gets it.
  struct Remains {
    let waiting: [Kept]
    let stages: [Stage]
    let messages: (first: RequestPart?, level: Level?)
    let bytes: (first: RequestPart?, level: Level?)
  }

  /// Message hooks, or byte hooks: where attempts are started again, and what for that is kept.
  final class Level {
    /// The messages that followed what it was started with.
    var log: ReplayLog<RequestPart>
    var hasEnded = false
    /// What is to be sent again before anything new.
    var replay: Deque<RequestPart> = []
    var isWaitingToRetry = false

    var mustReplay = false

    /// Whether nothing new can be sent for now.
    var isBusy: Bool { self.isWaitingToRetry || self.mustReplay }

    init(log: ReplayLog<RequestPart>) {
      self.log = log
    }

    func reset() {
      let replay = self.replay
      if self.mustReplay { self.replay = [] }
      self.mustReplay = false
      self.isWaitingToRetry = false
      withExtendedLifetime(replay) {}
    }

    func note(_ part: RequestPart) {
      if case .end = part { self.hasEnded = true } else { self.log.append(part) }
    }

    func takeReplay() -> RequestPart? {
      defer { self.mustReplay = !self.replay.isEmpty }
      return self.replay.popFirst()
    }

    func replay(_ head: RequestPart) {
      self.isWaitingToRetry = false
      self.mustReplay = true
      self.replay = [head]
      self.replay.append(contentsOf: self.log.elements)
      if self.hasEnded { self.replay.append(.end) }
    }
  }
}
