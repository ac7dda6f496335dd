/// What a random chain is expected to do, as simple recursion.
struct RandomChainModel {
  private struct Restart: Error {
    var isOfBytes: Bool
  }

  private let chain: RandomChain
  private var server: RandomServerModel
  private var visits: [String: Int] = [:]
  private(set) var events: [String] = []
  /// What async interceptors see of an end from outside. Their tasks see that later than hooks, in any order.
  private(set) var lateEvents: [String] = []

  init(_ chain: RandomChain) {
    self.chain = chain
    self.server = RandomServerModel(
      chain.server,
      hedging: chain.hedging,
      call: RandomCallState(maximumRetries: chain.maximumRetries, end: chain.end)
    )
  }

  /// What the call has used up.
  var call: RandomCallState { self.server.call }

  mutating func run() -> RandomOutcome {
    self.chain.callHooks.run(
      &self,
      { $0.events.append($1) },
      end: self.chain.end,
      attemptCount: { $0.call.attempts.count },
      inside: { try $0.enterAllMessages() }
    )
  }

  private mutating func enterAllMessages() throws -> RandomOutcome {
    while true {
      do {
        return try self.enterMessages(0)
      } catch is Restart {}
    }
  }

  private mutating func enterMessages(_ index: Int) throws -> RandomOutcome {
    let stages = self.chain.messageStages
    guard index < stages.count else { return try self.enterAllBytes() }
    return try self.enter(stages[index], isOfBytes: false) { try $0.enterMessages(index + 1) }
  }

  private mutating func enterAllBytes() throws -> RandomOutcome {
    while true {
      do {
        return try self.enterBytes(0)
      } catch let restart as Restart where restart.isOfBytes {}
    }
  }

  private mutating func enterBytes(_ index: Int) throws -> RandomOutcome {
    let stages = self.chain.byteStages
    guard index < stages.count else { return try self.serve() }
    return try self.enter(stages[index], isOfBytes: true) { try $0.enterBytes(index + 1) }
  }

  private mutating func serve() throws -> RandomOutcome {
    defer { self.events += self.server.events }
    return try self.server.serve()
  }

  private mutating func visit(_ name: String) -> Int {
    defer { self.visits[name, default: 0] += 1 }
    return self.visits[name, default: 0]
  }

  private mutating func enter(
    _ stage: RandomChain.Stage,
    isOfBytes: Bool,
    _ inside: (inout RandomChainModel) throws -> RandomOutcome
  ) throws -> RandomOutcome {
    self.events.append("\(stage.name) request")
    return switch stage.kind {
    case .hooks(let hooks): try self.enter(hooks, stage.name, isOfBytes: isOfBytes, inside)
    case .async(let script): try self.enter(script, stage.name, isOfBytes: isOfBytes, inside)
    }
  }

  private mutating func enter(
    _ hooks: RandomChain.Hooks,
    _ name: String,
    isOfBytes: Bool,
    _ inside: (inout RandomChainModel) throws -> RandomOutcome
  ) throws -> RandomOutcome {
    switch hooks.requests[self.visit("\(name) request") % hooks.requests.count] {
    case .pass: break
    case .fail: return "internal \(name)"
    case .answer: return "ok \(name)"
    }
    let outcome: RandomOutcome
    do {
      outcome = try inside(&self)
    } catch let end as RandomEnd.Reached {
      self.events.append("\(name) response \(self.chain.end?.outcome ?? "")")
      throw end
    }
    self.events.append("\(name) response \(outcome)")
    switch hooks.responses[self.visit("\(name) response") % hooks.responses.count] {
    case .pass: return outcome
    case .error: return "data_loss \(name)"
    case .response: return "ok \(name)"
    case .retry:
      guard self.server.call.takeRetry() else { return outcome }
    case .retryLater:
      guard self.server.call.takeRetry(after: .seconds(1)) else { return outcome }
      do {
        try self.server.call.pass(.seconds(1))
      } catch {
        throw RandomEnd.Reached(isInRetryOfBytes: isOfBytes)
      }
    }
    throw Restart(isOfBytes: isOfBytes)
  }

  private mutating func enter(
    _ script: RandomChain.Async,
    _ name: String,
    isOfBytes: Bool,
    _ inside: (inout RandomChainModel) throws -> RandomOutcome
  ) throws -> RandomOutcome {
    var retriesLeft = 0
    switch script {
    case .fail: return "internal \(name)"
    case .answer: return "ok \(name)"
    case .retry(let count): retriesLeft = count
    case .pass, .replace: break
    }
    var outcome: RandomOutcome
    do {
      outcome = try inside(&self)
      while retriesLeft > 0, !outcome.hasPrefix("ok") {
        retriesLeft -= 1
        if self.server.call.takeRetry() { outcome = try inside(&self) }
      }
    } catch let end as RandomEnd.Reached {
      // It sees the end unless its `next` was given up, or it calls `next` again, which throws.
      if end.isInRetryOfBytes != isOfBytes, retriesLeft == 0 {
        self.lateEvents.append("\(name) response \(self.chain.end?.outcome ?? "")")
      }
      throw end
    }
    self.events.append("\(name) response \(outcome)")
    if case .replace = script { return "data_loss \(name)" }
    return outcome
  }
}
