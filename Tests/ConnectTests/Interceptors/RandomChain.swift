import Connect
import Foundation
import NIOCore
import TestSupport

/// A random chain of interceptors of unary calls, what each does at each of its visits, and what it is called with.
struct RandomChain {
  enum RequestAction: CaseIterable, Sendable {
    case pass, fail, answer
  }

  enum ResponseAction: CaseIterable, Sendable {
    case pass, error, response, retry
    /// A second later.
    case retryLater
  }

  /// When a hook proceeds.
  enum Timing: CaseIterable, Sendable {
    case atOnce, later, elsewhere
  }

  struct Hooks: Sendable {
    var requests: [RequestAction]
    var responses: [ResponseAction]
    /// Of hooks that are not in the synchronous form, which proceed at once.
    var timing: Timing
    /// Which hooks are in the synchronous form, which cannot answer.
    var isRequestUpdate = false
    var isResponseUpdate = false

    mutating func chooseForms(using generator: inout SeededGenerator) {
      let updatesRequest = Bool.random(using: &generator)
      self.isRequestUpdate = updatesRequest && !self.requests.contains(.answer)
      self.isResponseUpdate = Bool.random(using: &generator)
    }
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

    mutating func chooseForms(using generator: inout SeededGenerator) {
      guard case .hooks(var hooks) = self.kind else { return }
      hooks.chooseForms(using: &generator)
      self.kind = .hooks(hooks)
    }
  }

  /// In the order of the interceptors; an interceptor may have any of the four.
  struct Interceptor: Sendable {
    var call: RandomCallHook?
    var async: Stage?
    /// Whether the async form works on bytes.
    var isAsyncOfBytes = false
    var messages: Stage?
    var bytes: Stage?
    /// Of the byte hooks.
    var placement = HookPlacement.asListed
    /// The name of the end hook, if there is one.
    var end: String?

    mutating func extend(_ index: Int, using generator: inout SeededGenerator) {
      self.messages?.chooseForms(using: &generator)
      self.bytes?.chooseForms(using: &generator)
      let placements: [HookPlacement] = [.asListed, .asListed, .innermost, .userIndependent]
      self.placement = placements.randomElement(using: &generator) ?? .asListed
      if Bool.random(using: &generator) { self.end = "e\(index)" }
    }
  }

  var interceptors: [Interceptor]
  var server: RandomServer
  var hedging: HedgingPolicy?
  var end: RandomEnd?
  var maximumRetries: Int

  /// - Parameter isTimed: Whether anything takes time, in which the call may hedge, and may be ended. Then all hooks proceed
  ///   on the executor, so that time does not pass while they work.
  init(using generator: inout SeededGenerator, isTimed: Bool = false) {
    self.interceptors = (0..<Int.random(in: 1...6, using: &generator)).map { index in
      var interceptor = Interceptor()
      let forms = Int.random(in: 1...15, using: &generator)
      if forms & 1 != 0 {
        interceptor.messages = Stage(
          name: "m\(index)",
          kind: .hooks(Self.hooks(&generator, isTimed: isTimed))
        )
      }
      if forms & 2 != 0 {
        interceptor.bytes = Stage(name: "b\(index)", kind: .hooks(Self.hooks(&generator, isTimed: isTimed)))
      }
      if forms & 4 != 0 {
        interceptor.async = Stage(name: "a\(index)", kind: .async(Self.async(&generator)))
        interceptor.isAsyncOfBytes = Int.random(in: 0..<3, using: &generator) == 0
      }
      if forms & 8 != 0 { interceptor.call = RandomCallHook(name: "c\(index)", using: &generator) }
      return interceptor
    }
    self.server = RandomServer(using: &generator, isTimed: isTimed)
    self.maximumRetries = Int.random(in: 0...5, using: &generator)
    // From other numbers, so that a seed still makes what it made before these choices existed.
    var more = generator.fork()
    for index in self.interceptors.indices { self.interceptors[index].extend(index, using: &more) }
    guard isTimed else { return }
    self.end = RandomEnd(using: &generator)
    if Bool.random(using: &generator) {
      self.hedging = HedgingPolicy(
        maximumAttempts: Int.random(in: 2...6, using: &generator),
        delay: .milliseconds(100 * Int.random(in: 0...4, using: &generator)),
        codes: Bool.random(using: &generator) ? [.unavailable] : [.unavailable, .aborted],
        allowsSideEffects: true
      )
    }
  }

  private static func hooks(_ generator: inout SeededGenerator, isTimed: Bool) -> Hooks {
    let responses = ResponseAction.allCases.filter { isTimed || $0 != .retryLater }
    let timings = Timing.allCases.filter { !isTimed || $0 != .elsewhere }
    return Hooks(
      requests: (0..<3).map { _ in
        Int.random(in: 0..<4, using: &generator) > 0
          ? .pass : RequestAction.allCases.randomElement(using: &generator) ?? .pass
      },
      responses: (0..<3).map { _ in
        Bool.random(using: &generator) ? .pass : responses.randomElement(using: &generator) ?? .pass
      },
      timing: timings.randomElement(using: &generator) ?? .atOnce
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

  var callHooks: [RandomCallHook] { self.interceptors.compactMap(\.call) }

  var endHooks: [String] { self.interceptors.compactMap(\.end) }

  var messageStages: [Stage] {
    self.interceptors.flatMap { [$0.isAsyncOfBytes ? nil : $0.async, $0.messages].compactMap { $0 } }
  }

  /// Those that are placed as listed, and inside of them the others.
  var byteStages: [Stage] {
    var listed: [Stage] = []
    var inner: [Stage] = []
    for interceptor in self.interceptors {
      if interceptor.isAsyncOfBytes, let stage = interceptor.async { listed.append(stage) }
      guard let stage = interceptor.bytes else { continue }
      switch interceptor.placement {
      case .innermost: inner.append(stage)
      case .userIndependent where !inner.isEmpty: inner.append(stage)
      case .asListed, .userIndependent: listed.append(stage)
      }
    }
    return listed + inner
  }
}

extension SeededGenerator {
  /// A generator of other numbers. The numbers of this one stay the same.
  func fork() -> SeededGenerator {
    var copy = self
    return SeededGenerator(quietly: ~copy.next())
  }
}

/// The call hooks of one interceptor in a random chain, of unary calls and of streams.
struct RandomCallHook: Sendable {
  enum OutcomeAction: CaseIterable, Sendable {
    case pass, error
    /// Tries to make the call succeed, which is in vain if it has failed.
    case success
  }

  var name: String
  var throwsError: Bool
  var outcome: OutcomeAction

  init(name: String, using generator: inout SeededGenerator) {
    self.name = name
    self.throwsError = Int.random(in: 0..<10, using: &generator) == 0
    self.outcome =
      Int.random(in: 0..<3, using: &generator) > 0
      ? .pass : OutcomeAction.allCases.randomElement(using: &generator) ?? .pass
  }

  /// The hooks, which say what they see.
  func function(_ add: @escaping @Sendable (String) -> Void) -> CallFunction {
    CallFunction(
      requestFunction: { _ in
        add("\(self.name) request")
        if self.throwsError { throw ConnectError(code: .internalError, message: self.name) }
      },
      outcomeFunction: { outcome in
        add("\(self.name) outcome \(outcome.code) of \(outcome.attempts)")
        switch self.outcome {
        case .pass: break
        case .error: outcome.error = ConnectError(code: .dataLoss, message: self.name)
        case .success:
          outcome.code = .ok
          outcome.error = nil
        }
      }
    )
  }
}

/// What a call comes to: `ok` and the message, or the code and the error's message.
typealias RandomOutcome = String

extension [RandomCallHook] {
  /// What the hooks see and do, in a model.
  ///
  /// - Parameters:
  ///   - attemptCount: How many attempts were made, once the inside has ended.
  ///   - inside: Gives the outcome, as its code and the rest, or throws ``RandomEnd/Reached``.
  /// - Returns: The outcome for the caller.
  func run<Model>(
    _ model: inout Model,
    _ add: (inout Model, String) -> Void,
    end: RandomEnd?,
    attemptCount: (Model) -> Int,
    inside: (inout Model) throws -> RandomOutcome
  ) -> RandomOutcome {
    var waiting: [RandomCallHook] = []
    var thrown: RandomOutcome?
    for hook in self where thrown == nil {
      add(&model, "\(hook.name) request")
      if hook.throwsError { thrown = "internal \(hook.name)" } else { waiting.append(hook) }
    }
    // What hooks make of the end from outside is ignored.
    var fixed: RandomOutcome?
    var outcome: RandomOutcome
    do {
      outcome = try thrown ?? inside(&model)
    } catch {
      outcome = end?.outcome ?? "\(error)"
      fixed = outcome
    }
    for hook in waiting.reversed() {
      add(&model, "\(hook.name) outcome \(outcome.prefix { $0 != " " }) of \(attemptCount(model))")
      if hook.outcome == .error { outcome = "data_loss \(hook.name)" }
    }
    return fixed ?? outcome
  }
}
