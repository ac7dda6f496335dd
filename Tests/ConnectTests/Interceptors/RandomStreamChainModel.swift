/// What a random chain is expected to do, attempt by attempt, with whole lists in place of streams.
struct RandomStreamChainModel {
  private struct Restart: Error {
    var isOfBytes: Bool
  }

  private let chain: RandomStreamChain
  /// What the call has used up.
  private(set) var call: RandomCallState
  private var servedCount = 0
  private var visits: [String: Int] = [:]
  /// What each stage, all call hooks together, and the server saw.
  private(set) var events: [String: [String]] = [:]

  init(_ chain: RandomStreamChain) {
    self.chain = chain
    self.call = RandomCallState(maximumRetries: chain.maximumRetries, end: chain.end)
  }

  mutating func run() -> [String] {
    var results: [String] = []
    let outcome = self.chain.callHooks.run(
      &self,
      { $0.events["calls", default: []].append($1) },
      end: self.chain.end,
      attemptCount: { $0.call.attempts.count },
      inside: { model in
        results = try model.enterAllMessages()
        return String(results.removeLast().dropFirst("end ".count))
      }
    )
    return results + ["end \(outcome.prefix { $0 != " " })"]
  }

  private mutating func enterAllMessages() throws -> [String] {
    while true {
      do {
        return try self.enterMessages(0, self.chain.messages)
      } catch is Restart {}
    }
  }

  private mutating func enterMessages(_ index: Int, _ messages: [String]) throws -> [String] {
    let stages = self.chain.messageStages
    guard index < stages.count else { return try self.enterAllBytes(messages) }
    return try self.enter(stages[index], messages, isOfBytes: false) { try $0.enterMessages(index + 1, $1) }
  }

  private mutating func enterAllBytes(_ messages: [String]) throws -> [String] {
    while true {
      do {
        return try self.enterBytes(0, messages)
      } catch let restart as Restart where restart.isOfBytes {}
    }
  }

  private mutating func enterBytes(_ index: Int, _ messages: [String]) throws -> [String] {
    let stages = self.chain.byteStages
    guard index < stages.count else { return try self.serve(messages) }
    return try self.enter(stages[index], messages, isOfBytes: true) { try $0.enterBytes(index + 1, $1) }
  }

  private mutating func serve(_ messages: [String]) throws -> [String] {
    self.call.startAttempt()
    while true {
      _ = self.call.startStream()
      self.events["server", default: []].append("\(messages)")
      let index = self.servedCount % self.chain.server.count
      self.servedCount += 1
      try self.call.pass(self.chain.latencies[index])
      switch self.chain.server[index] {
      case .fine: return ["headers"] + messages + ["end ok"]
      case .failsAtTheEnd: return ["headers"] + messages + ["end unavailable"]
      case .unprocessed where self.call.takeTransparentRetry(): continue
      case .failsBeforeHeaders, .unprocessed: return ["end aborted"]
      }
    }
  }

  private mutating func visit(_ name: String) -> Int {
    defer { self.visits[name, default: 0] += 1 }
    return self.visits[name, default: 0]
  }

  private mutating func enter(
    _ stage: RandomStreamChain.Stage,
    _ messages: [String],
    isOfBytes: Bool,
    _ inside: (inout RandomStreamChainModel, [String]) throws -> [String]
  ) throws -> [String] {
    self.events[stage.name, default: []].append("head")
    return switch stage.kind {
    case .hooks(let hooks): try self.enter(hooks, stage.name, messages, isOfBytes: isOfBytes, inside)
    case .async(let script): try self.enter(script, stage.name, messages, isOfBytes: isOfBytes, inside)
    }
  }

  private mutating func enter(
    _ hooks: RandomStreamChain.Hooks,
    _ name: String,
    _ messages: [String],
    isOfBytes: Bool,
    _ inside: (inout RandomStreamChainModel, [String]) throws -> [String]
  ) throws -> [String] {
    switch hooks.heads[self.visit("\(name) head") % hooks.heads.count] {
    case .pass: break
    case .fail: return ["end internal"]
    case .answer: return ["headers", name, "end ok"]
    }
    let results: [String]
    do {
      results = try inside(&self, self.apply(hooks.requests, to: messages, suffix: ">"))
    } catch let end as RandomEnd.Reached {
      self.events[name, default: []].append("end \(self.chain.end?.outcome ?? "")")
      throw end
    }
    self.events[name, default: []] += results
    var passed = results.first == "headers" ? ["headers"] : []
    passed += self.apply(
      hooks.results,
      to: results.filter { $0 != "headers" && !$0.hasPrefix("end") },
      suffix: "<"
    )
    let end = results.last ?? ""
    switch hooks.ends[self.visit("\(name) end") % hooks.ends.count] {
    case .pass: return passed + [end]
    case .error: return passed + ["end data_loss"]
    case .fine: return passed + ["end ok"]
    case .message: return passed + [name, "end ok"]
    case .retry:
      guard passed.isEmpty, self.call.takeRetry() else { return passed + [end] }
    case .retryLater:
      guard passed.isEmpty, self.call.takeRetry(after: .seconds(1)) else { return passed + [end] }
      do {
        try self.call.pass(.seconds(1))
      } catch {
        throw RandomEnd.Reached(isInRetryOfBytes: isOfBytes)
      }
    }
    throw Restart(isOfBytes: isOfBytes)
  }

  private mutating func enter(
    _ script: RandomChain.Async,
    _ name: String,
    _ messages: [String],
    isOfBytes: Bool,
    _ inside: (inout RandomStreamChainModel, [String]) throws -> [String]
  ) throws -> [String] {
    if case .fail = script { return ["end internal"] }
    if case .answer = script { return ["headers", name, "end ok"] }
    var results: [String]
    do {
      results = try inside(&self, messages)
      if case .retry(let count) = script {
        for _ in 0..<count where results[0] == "end aborted" && self.call.takeRetry() {
          results = try inside(&self, messages)
        }
      }
    } catch let end as RandomEnd.Reached {
      // One that retries looks at the end before it passes it on, to nobody any more.
      if case .retry = script { throw end }
      if end.isInRetryOfBytes != isOfBytes {
        self.events[name, default: []].append("end \(self.chain.end?.outcome ?? "")")
      }
      throw end
    }
    self.events[name, default: []] += results
    guard case .replace = script else { return results }
    return results.map { $0.hasPrefix("end") || $0 == "headers" ? $0 : $0 + "~" }
  }

  private func apply(
    _ actions: [RandomStreamChain.MessageAction],
    to messages: [String],
    suffix: String
  ) -> [String] {
    messages.enumerated().compactMap { index, message in
      switch actions[index % actions.count] {
      case .pass: message
      case .change: message + suffix
      case .drop: nil
      }
    }
  }
}
