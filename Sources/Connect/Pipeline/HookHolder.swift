/// An interceptor that has something of a call and has not passed it on, as messages name it.
struct HookHolder: CustomStringConvertible {
  enum Held {
    case request
    case requestMessage
    case headers
    case response
  }

  let interceptor: any Interceptor.Type
  let held: Held

  var description: String {
    let what =
      switch self.held {
      case .request: "the request"
      case .requestMessage: "a request message"
      case .headers: "the response's headers"
      case .response: "the response"
      }
    return "\(self.interceptor) has \(what)"
  }

  /// Nil if the interceptor has nothing at this stage, or has passed it on.
  init?(_ stage: Stage) {
    let held: Held? =
      switch stage.role {
      case .codec: nil
      case .async(let stage): stage.held
      case .hooks: Self.held(by: stage)
      }
    guard let held else { return nil }
    self.interceptor = stage.interceptor
    self.held = held
  }

  private static func held(by stage: Stage) -> Held? {
    if stage.requests?.hasWaiting == true { return stage.holdsHead ? .request : .requestMessage }
    guard let results = stage.results, results.hasWaiting else { return nil }
    if results.count == 1, case .headers? = results.firstWaiting { return .headers }
    return .response
  }
}

/// Who holds up a call with these stages.
struct HookHolders {
  let stages: [Stage]

  init(in pipeline: Pipeline) { self.stages = pipeline.order.stages }

  /// The interceptor that a visit was made to, if the pipeline waits for what its hook does.
  func holder(of place: Visit.Place, _ number: Int) -> HookHolder? {
    switch place {
    case .request(let index):
      guard index < self.stages.count, self.stages[index].requests?.waiting(number) != nil else { return nil }
      return HookHolder(self.stages[index])
    case .result(let index):
      guard index < self.stages.count, self.stages[index].results?.waiting(number) != nil else { return nil }
      return HookHolder(self.stages[index])
    case .metrics:
      return nil
    }
  }

  /// The outermost interceptor that has something, unless it has headers alone: most of these wait for what the server sends
  /// behind them.
  var blocking: HookHolder? {
    for stage in self.stages {
      if let holder = HookHolder(stage) { return holder.held == .headers ? nil : holder }
    }
    return nil
  }

  /// Whether an interceptor has the request and has not passed it on.
  var haveHead: Bool {
    self.stages.contains { stage in
      switch stage.role {
      case .hooks: stage.holdsHead
      case .async(let stage): stage.holdsRequest
      case .codec: false
      }
    }
  }
}
