import Connect

/// A random chain of interceptors of streams.
struct RandomStreamChain {
  enum HeadAction: CaseIterable, Sendable {
    case pass, fail, answer
  }

  enum MessageAction: CaseIterable, Sendable {
    case pass, change, drop
  }

  enum EndAction: CaseIterable, Sendable {
    case pass, error, fine, message, retry
  }

  struct Hooks: Sendable {
    /// By visit.
    var heads: [HeadAction]
    /// By the message's place in its attempt.
    var requests: [MessageAction]
    var results: [MessageAction]
    /// By visit.
    var ends: [EndAction]
    var timing: RandomChain.Timing
  }

  struct Stage: Sendable {
    enum Kind: Sendable {
      case hooks(Hooks)
      case async(RandomChain.Async)
    }

    var name: String
    var kind: Kind
  }

  struct Interceptor: Sendable {
    var async: Stage?
    var messages: Stage?
    var bytes: Stage?
  }

  enum Server: CaseIterable, Sendable {
    case fine, failsBeforeHeaders, failsAtTheEnd
  }

  var interceptors: [Interceptor]
  var server: [Server]
  var maximumRetries: Int
  var messages: [String]

  init(using generator: inout SeededGenerator) {
    self.interceptors = (0..<Int.random(in: 1...6, using: &generator)).map { index in
      var interceptor = Interceptor()
      let forms = Int.random(in: 1...7, using: &generator)
      if forms & 1 != 0 {
        interceptor.messages = Stage(name: "m\(index)", kind: .hooks(Self.hooks(&generator)))
      }
      if forms & 2 != 0 { interceptor.bytes = Stage(name: "b\(index)", kind: .hooks(Self.hooks(&generator))) }
      if forms & 4 != 0 {
        let scripts: [RandomChain.Async] = [.pass, .replace, .retry(1), .retry(3), .pass, .fail, .answer]
        let last = Int.random(in: 0..<4, using: &generator) > 0 ? 4 : 6
        interceptor.async = Stage(
          name: "a\(index)",
          kind: .async(scripts[Int.random(in: 0...last, using: &generator)])
        )
      }
      return interceptor
    }
    self.server = (0..<4).map { _ in Server.allCases.randomElement(using: &generator) ?? .fine }
    self.maximumRetries = Int.random(in: 0...5, using: &generator)
    self.messages = (0..<Int.random(in: 0...5, using: &generator)).map { "\($0)" }
  }

  private static func hooks(_ generator: inout SeededGenerator) -> Hooks {
    func actions<Action: CaseIterable>(_ usual: Action, _ likelihood: Int) -> [Action] {
      (0..<3).map { _ in
        Int.random(in: 0..<likelihood, using: &generator) > 0
          ? usual : Action.allCases.randomElement(using: &generator) ?? usual
      }
    }
    var hooks = Hooks(
      heads: actions(.pass, 5),
      requests: actions(.pass, 2),
      results: actions(.pass, 2),
      ends: actions(.pass, 2),
      timing: RandomChain.Timing.allCases.randomElement(using: &generator) ?? .atOnce
    )
    // Whether a retry comes before the headers have passed must not depend on the order of threads.
    if hooks.ends.contains(.retry), hooks.timing == .elsewhere { hooks.timing = .later }
    return hooks
  }

  var messageStages: [Stage] { self.interceptors.flatMap { [$0.async, $0.messages].compactMap { $0 } } }

  var byteStages: [Stage] { self.interceptors.compactMap(\.bytes) }
}

/// What a random chain is expected to do, attempt by attempt, with whole lists in place of streams.
struct RandomStreamChainModel {
  private struct Restart: Error {
    var isOfBytes: Bool
  }

  private let chain: RandomStreamChain
  private var retriesLeft: Int
  private var attempts = 0
  private var visits: [String: Int] = [:]
  /// What each stage, and the server, saw.
  private(set) var events: [String: [String]] = [:]

  init(_ chain: RandomStreamChain) {
    self.chain = chain
    self.retriesLeft = chain.maximumRetries
  }

  mutating func run() -> [String] {
    while true {
      if let results = try? self.enterMessages(0, self.chain.messages) { return results }
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
    guard index < stages.count else { return self.serve(messages) }
    return try self.enter(stages[index], messages, isOfBytes: true) { try $0.enterBytes(index + 1, $1) }
  }

  private mutating func serve(_ messages: [String]) -> [String] {
    defer { self.attempts += 1 }
    self.events["server", default: []].append("\(messages)")
    return switch self.chain.server[self.attempts % self.chain.server.count] {
    case .fine: ["headers"] + messages + ["end ok"]
    case .failsBeforeHeaders: ["end aborted"]
    case .failsAtTheEnd: ["headers"] + messages + ["end unavailable"]
    }
  }

  private mutating func takeRetry() -> Bool {
    guard self.retriesLeft > 0 else { return false }
    self.retriesLeft -= 1
    return true
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
    switch stage.kind {
    case .hooks(let hooks):
      switch hooks.heads[self.visit("\(stage.name) head") % hooks.heads.count] {
      case .pass: break
      case .fail: return ["end internal"]
      case .answer: return ["headers", stage.name, "end ok"]
      }
      let results = try inside(&self, self.apply(hooks.requests, to: messages, suffix: ">"))
      self.events[stage.name, default: []] += results
      var passed = results.first == "headers" ? ["headers"] : []
      passed += self.apply(
        hooks.results,
        to: results.filter { $0 != "headers" && !$0.hasPrefix("end") },
        suffix: "<"
      )
      let end = results.last ?? ""
      switch hooks.ends[self.visit("\(stage.name) end") % hooks.ends.count] {
      case .pass: return passed + [end]
      case .error: return passed + ["end data_loss"]
      case .fine: return passed + ["end ok"]
      case .message: return passed + [stage.name, "end ok"]
      case .retry:
        guard passed.isEmpty, self.takeRetry() else { return passed + [end] }
        throw Restart(isOfBytes: isOfBytes)
      }
    case .async(let script):
      if case .fail = script { return ["end internal"] }
      if case .answer = script { return ["headers", stage.name, "end ok"] }
      var results = try inside(&self, messages)
      if case .retry(let count) = script {
        for _ in 0..<count where results[0] == "end aborted" && self.takeRetry() {
          results = try inside(&self, messages)
        }
      }
      self.events[stage.name, default: []] += results
      guard case .replace = script else { return results }
      return results.map { $0.hasPrefix("end") || $0 == "headers" ? $0 : $0 + "~" }
    }
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
