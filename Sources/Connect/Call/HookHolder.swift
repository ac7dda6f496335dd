/// An interceptor that holds a part of a call. Its description is for messages.
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

  /// Nil if the interceptor holds nothing at this stage.
  init?(_ role: Stage.Role) {
    let held: Held? =
      switch role {
      case .codec: nil
      case .async(let stage): stage.held
      case .hooks(let stage): Self.held(by: stage)
      }
    guard let held else { return nil }
    self.interceptor = role.stage.interceptor
    self.held = held
  }

  private static func held(by stage: Stage) -> Held? {
    if stage.requests?.hasWaiting == true { return stage.holdsHead ? .request : .requestMessage }
    guard let results = stage.results, results.hasWaiting else { return nil }
    if results.count == 1, case .headers? = results.firstWaiting { return .headers }
    return .response
  }
}

/// The interceptors that hold up a call with these stages.
struct HookHolders {
  let stages: [Stage.Role]

  init(in pipeline: Pipeline) { self.stages = pipeline.order.stages }

  /// The interceptor of a visit, if the pipeline waits for the action of its hook.
  func holder(of place: Visit.Place, _ number: Int) -> HookHolder? {
    switch place {
    case .request(let index):
      guard index < self.stages.count, self.stages[index].stage.requests?.waiting(number) != nil else {
        return nil
      }
      return HookHolder(self.stages[index])
    case .result(let index):
      guard index < self.stages.count, self.stages[index].stage.results?.waiting(number) != nil else {
        return nil
      }
      return HookHolder(self.stages[index])
    case .metrics:
      return nil
    }
  }

  /// The outermost interceptor that holds something. Nil if it holds only headers: most such interceptors wait for what
  /// the server sends next.
  var blocking: HookHolder? {
    for stage in self.stages {
      if let holder = HookHolder(stage) { return holder.held == .headers ? nil : holder }
    }
    return nil
  }

  /// Whether an interceptor holds the request.
  var haveHead: Bool {
    self.stages.contains { stage in
      switch stage {
      case .hooks(let stage): stage.holdsHead
      case .async(let stage): stage.holdsRequest
      case .codec: false
      }
    }
  }
}
