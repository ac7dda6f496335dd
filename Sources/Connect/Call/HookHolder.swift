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

  fileprivate init?(at index: Int, in order: PipelineOrder) {
    let stage = order.stages[index]
    let held: Held? =
      switch stage {
      case .codec: nil
      case .async(let stage): stage.held
      case .hooks: order.held(at: index)
      }
    guard let held, let interceptor = stage.interceptor else { return nil }
    self.interceptor = interceptor
    self.held = held
  }
}

/// The interceptors that hold up a call.
struct HookHolders {
  private let order: PipelineOrder

  init(in order: PipelineOrder) { self.order = order }

  /// The interceptor that holds something at a stage; nil if there is none.
  func holder(at index: Int) -> HookHolder? { HookHolder(at: index, in: self.order) }

  /// The interceptor of a visit, if the pipeline waits for the action of its hook.
  func holder(of place: Visit.Place, _ number: Int) -> HookHolder? {
    switch place {
    case .request(let index):
      guard self.order[index].requests?.waiting(number) != nil else { return nil }
      return self.holder(at: index)
    case .result(let index):
      guard self.order[index].results?.waiting(number) != nil else { return nil }
      return self.holder(at: index)
    case .metrics:
      return nil
    }
  }

  /// The outermost interceptor that holds something. Nil if it holds only headers: most such interceptors wait for what
  /// the server sends next.
  var blocking: HookHolder? {
    for index in self.order.stages.indices {
      if let holder = self.holder(at: index) { return holder.held == .headers ? nil : holder }
    }
    return nil
  }

  /// Whether an interceptor holds the request.
  var haveHead: Bool {
    self.order.headHolder != nil
      || self.order.stages.contains { if case .async(let stage) = $0 { stage.holdsRequest } else { false } }
  }
}

extension HookStates {
  /// What the hook of a stage has and has not passed on.
  fileprivate func held(at index: Int) -> HookHolder.Held? {
    let waiting = self[index]
    if waiting.requests?.hasWaiting == true { return self.headHolder == index ? .request : .requestMessage }
    guard let results = waiting.results, results.hasWaiting else { return nil }
    if results.count == 1, case .headers? = results.firstWaiting { return .headers }
    return .response
  }
}
