import Connect
import TestSupport

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
    /// A second later.
    case retryLater
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

  /// In the order of the interceptors; an interceptor may have any of the four.
  struct Interceptor: Sendable {
    var call: RandomCallHook?
    var async: Stage?
    /// Whether the async form works on bytes.
    var isAsyncOfBytes = false
    var messages: Stage?
    var bytes: Stage?
    /// The name of the end hook, if there is one.
    var end: String?
  }

  enum Server: CaseIterable, Sendable {
    case fine, failsBeforeHeaders, failsAtTheEnd
    /// Before headers; the server certainly did not process it.
    case unprocessed
  }

  var interceptors: [Interceptor]
  /// What the server does with a whole request, by how many there were before.
  var server: [Server]
  /// How long it takes for that.
  var latencies: [Duration]
  var end: RandomEnd?
  var maximumRetries: Int
  var messages: [String]

  /// - Parameter isTimed: Whether anything takes time, in which the call may be ended. Then all hooks proceed on the
  ///   executor, so that time does not pass while they work.
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
        let scripts: [RandomChain.Async] = [.pass, .replace, .retry(1), .retry(3), .pass, .fail, .answer]
        let last = Int.random(in: 0..<4, using: &generator) > 0 ? 4 : 6
        interceptor.async = Stage(
          name: "a\(index)",
          kind: .async(scripts[Int.random(in: 0...last, using: &generator)])
        )
        interceptor.isAsyncOfBytes = Int.random(in: 0..<3, using: &generator) == 0
      }
      if forms & 8 != 0 { interceptor.call = RandomCallHook(name: "c\(index)", using: &generator) }
      return interceptor
    }
    self.server = (0..<4).map { _ in Server.allCases.randomElement(using: &generator) ?? .fine }
    self.latencies = (0..<4).map { _ in
      isTimed ? .milliseconds(100 * Int.random(in: 0...9, using: &generator)) : .zero
    }
    self.end = isTimed ? RandomEnd(using: &generator) : nil
    self.maximumRetries = Int.random(in: 0...5, using: &generator)
    self.messages = (0..<Int.random(in: 0...5, using: &generator)).map { "\($0)" }
    // From other numbers, so that a seed still makes what it made before these choices existed.
    var more = generator.fork()
    for index in self.interceptors.indices where Bool.random(using: &more) {
      self.interceptors[index].end = "e\(index)"
    }
  }

  private static func hooks(_ generator: inout SeededGenerator, isTimed: Bool) -> Hooks {
    func actions<Action: CaseIterable>(_ usual: Action, _ likelihood: Int) -> [Action] {
      (0..<3).map { _ in
        Int.random(in: 0..<likelihood, using: &generator) > 0
          ? usual : Action.allCases.randomElement(using: &generator) ?? usual
      }
    }
    let timings = RandomChain.Timing.allCases.filter { !isTimed || $0 != .elsewhere }
    var hooks = Hooks(
      heads: actions(.pass, 5),
      requests: actions(.pass, 2),
      results: actions(.pass, 2),
      ends: actions(.pass, 2),
      timing: timings.randomElement(using: &generator) ?? .atOnce
    )
    if !isTimed { hooks.ends = hooks.ends.map { $0 == .retryLater ? .retry : $0 } }
    // Whether a retry comes before the headers have passed must not depend on the order of threads.
    if hooks.ends.contains(.retry), hooks.timing == .elsewhere { hooks.timing = .later }
    return hooks
  }

  var callHooks: [RandomCallHook] { self.interceptors.compactMap(\.call) }

  var endHooks: [String] { self.interceptors.compactMap(\.end) }

  var messageStages: [Stage] {
    self.interceptors.flatMap { [$0.isAsyncOfBytes ? nil : $0.async, $0.messages].compactMap { $0 } }
  }

  var byteStages: [Stage] {
    self.interceptors.flatMap { [$0.isAsyncOfBytes ? $0.async : nil, $0.bytes].compactMap { $0 } }
  }
}
