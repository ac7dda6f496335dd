import Connect
import Foundation
import NIOCore

/// A random chain of interceptors of unary calls: what each does at each of its visits.
struct RandomChain {
  enum RequestAction: CaseIterable, Sendable {
    case pass, fail, answer
  }

  enum ResponseAction: CaseIterable, Sendable {
    case pass, error, response, retry
  }

  /// When a hook proceeds.
  enum Timing: CaseIterable, Sendable {
    case atOnce, later, elsewhere
  }

  struct Hooks: Sendable {
    var requests: [RequestAction]
    var responses: [ResponseAction]
    var timing: Timing
  }

  enum Async: Sendable {
    case pass, fail, answer, replace
    /// Calls `next` again on an error, so often.
    case retry(Int)
  }

  struct Stage: Sendable {
    enum Kind: Sendable {
      case hooks(Hooks)
      case async(Async)
    }

    var name: String
    var kind: Kind
  }

  /// In the order of the interceptors; an interceptor may have any of the three.
  struct Interceptor: Sendable {
    var async: Stage?
    var messages: Stage?
    var bytes: Stage?
  }

  enum Server: CaseIterable, Sendable {
    case fine, error, failure
  }

  var interceptors: [Interceptor]
  var server: [Server]
  var maximumRetries: Int

  init(using generator: inout SeededGenerator) {
    self.interceptors = (0..<Int.random(in: 1...6, using: &generator)).map { index in
      var interceptor = Interceptor()
      let forms = Int.random(in: 1...7, using: &generator)
      if forms & 1 != 0 {
        interceptor.messages = Stage(name: "m\(index)", kind: .hooks(Self.hooks(&generator)))
      }
      if forms & 2 != 0 { interceptor.bytes = Stage(name: "b\(index)", kind: .hooks(Self.hooks(&generator))) }
      if forms & 4 != 0 { interceptor.async = Stage(name: "a\(index)", kind: .async(Self.async(&generator))) }
      return interceptor
    }
    self.server = (0..<4).map { _ in Server.allCases.randomElement(using: &generator) ?? .fine }
    self.maximumRetries = Int.random(in: 0...5, using: &generator)
  }

  private static func hooks(_ generator: inout SeededGenerator) -> Hooks {
    Hooks(
      requests: (0..<3).map { _ in
        Int.random(in: 0..<4, using: &generator) > 0
          ? .pass : RequestAction.allCases.randomElement(using: &generator) ?? .pass
      },
      responses: (0..<3).map { _ in
        Bool.random(using: &generator)
          ? .pass : ResponseAction.allCases.randomElement(using: &generator) ?? .pass
      },
      timing: Timing.allCases.randomElement(using: &generator) ?? .atOnce
    )
  }

  private static func async(_ generator: inout SeededGenerator) -> Async {
    switch Int.random(in: 0..<8, using: &generator) {
    case 0: .fail
    case 1: .answer
    case 2: .replace
    case 3, 4: .retry(Int.random(in: 1...4, using: &generator))
    default: .pass
    }
  }

  var messageStages: [Stage] {
    self.interceptors.flatMap { [$0.async, $0.messages].compactMap { $0 } }
  }

  var byteStages: [Stage] { self.interceptors.compactMap(\.bytes) }
}

/// What a call comes to: `ok` and the message, or the code and the error's message.
typealias RandomOutcome = String

/// What a random chain is expected to do, as simple recursion.
struct RandomChainModel {
  private struct Restart: Error {
    var isOfBytes: Bool
  }

  private let chain: RandomChain
  private var retriesLeft: Int
  private var attempts = 0
  private var visits: [String: Int] = [:]
  private(set) var events: [String] = []

  init(_ chain: RandomChain) {
    self.chain = chain
    self.retriesLeft = chain.maximumRetries
  }

  mutating func run() -> RandomOutcome {
    while true {
      if let outcome = try? self.enterMessages(0) { return outcome }
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
    guard index < stages.count else { return self.serve() }
    return try self.enter(stages[index], isOfBytes: true) { try $0.enterBytes(index + 1) }
  }

  private mutating func serve() -> RandomOutcome {
    defer { self.attempts += 1 }
    self.events.append("server \(self.attempts)")
    return switch self.chain.server[self.attempts % self.chain.server.count] {
    case .fine: "ok server \(self.attempts)"
    case .error: "unavailable server \(self.attempts)"
    case .failure: "aborted server \(self.attempts)"
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
    _ stage: RandomChain.Stage,
    isOfBytes: Bool,
    _ inside: (inout RandomChainModel) throws -> RandomOutcome
  ) throws -> RandomOutcome {
    let name = stage.name
    self.events.append("\(name) request")
    switch stage.kind {
    case .hooks(let hooks):
      switch hooks.requests[self.visit("\(name) request") % hooks.requests.count] {
      case .pass: break
      case .fail: return "internal \(name)"
      case .answer: return "ok \(name)"
      }
      let outcome = try inside(&self)
      self.events.append("\(name) response \(outcome)")
      switch hooks.responses[self.visit("\(name) response") % hooks.responses.count] {
      case .pass: return outcome
      case .error: return "data_loss \(name)"
      case .response: return "ok \(name)"
      case .retry:
        guard self.takeRetry() else { return outcome }
        throw Restart(isOfBytes: isOfBytes)
      }
    case .async(let script):
      if case .fail = script { return "internal \(name)" }
      if case .answer = script { return "ok \(name)" }
      var outcome = try inside(&self)
      if case .retry(let count) = script {
        for _ in 0..<count where !outcome.hasPrefix("ok") && self.takeRetry() { outcome = try inside(&self) }
      }
      self.events.append("\(name) response \(outcome)")
      if case .replace = script { return "data_loss \(name)" }
      return outcome
    }
  }
}
