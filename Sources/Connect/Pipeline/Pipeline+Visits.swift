// Visits of hooks, and who holds the call up.
extension Pipeline {
  // MARK: Visits

  func makeVisit(at place: Visit.Place, _ host: any PipelineHost) -> Visit {
    let number = self.order.takeNumber()
    guard let visit = self.spareVisit.take() else { return Visit(number, at: place, of: host) }
    visit.renew(number, at: place, of: host)
    return visit
  }

  /// Keeps the visit for another hook, if nobody else has it.
  @inline(__always)
  func keep(_ visit: inout Visit) {
    guard isKnownUniquelyReferenced(&visit), visit.canBeRenewed else { return }
    visit.rest()
    self.spareVisit = visit
  }

  // MARK: Holders

  /// The last `proceed` of a visit is gone, and was not called.
  func holder(of place: Visit.Place, _ number: Int) -> HookHolder? {
    switch place {
    case .request(let index):
      guard self.order.stages.indices.contains(index),
        self.order.stages[index].requests.waiting(number) != nil
      else { return nil }
      return self.holder(at: index)
    case .result(let index):
      guard self.order.stages.indices.contains(index), self.order.stages[index].results.waiting(number) != nil
      else { return nil }
      return self.holder(at: index)
    case .metrics:
      return nil
    }
  }

  /// Whether the pipeline waits for what the hook of a visit does.
  package func awaits(_ visit: Visit) -> Bool { self.holder(of: visit.place, visit.number) != nil }

  /// The outermost interceptor that has something and has not passed it on.
  var holder: HookHolder? {
    for index in self.stages.indices {
      if let holder = self.holder(at: index) { return holder }
    }
    return nil
  }

  private func holder(at index: Int) -> HookHolder? {
    let interceptor = self.stages[index].interceptor
    let held: HookHolder.Held? =
      switch self.stages[index].form {
      case .hooks: self.order.held(at: index)
      case .async(let stage): stage.held
      case .codec: nil
      }
    return held.map { HookHolder(interceptor: interceptor, held: $0) }
  }

  /// The same, unless it has headers alone: most of these wait for what the server sends behind them.
  var blockingHolder: HookHolder? {
    self.holder.flatMap { $0.held == .headers ? nil : $0 }
  }

  /// Whether an interceptor has the request and has not passed it on.
  var holdsHead: Bool {
    self.stages.indices.contains { index in
      switch self.stages[index].form {
      case .hooks: self.order.stages[index].holdsHead
      case .async(let stage): stage.holdsHead
      case .codec: false
      }
    }
  }
}

extension PipelineOrder {
  /// What the hook of a stage has and has not passed on.
  func held(at index: Int) -> HookHolder.Held? {
    let stage = self.stages[index]
    if stage.requests.hasWaiting { return stage.holdsHead ? .request : .requestMessage }
    guard stage.results.hasWaiting else { return nil }
    if stage.results.count == 1, case .headers? = stage.results.firstWaiting { return .headers }
    return .response
  }
}
