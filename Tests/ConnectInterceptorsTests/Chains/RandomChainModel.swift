import Connect
import ConnectInterceptors

/// What the calls through a ``RandomChain`` are expected to come to, as a recursion from the outermost interceptor to the
/// server. Each interceptor is here what its documentation says, and no more: no hooks, no order of callbacks. A cache
/// stands inside of what tells users apart, whatever the order of the list.
struct RandomChainModel {
  /// What a call, or an attempt inside of some interceptor, comes to.
  struct Outcome: Equatable {
    /// What a good answer says.
    var text: String?
    var code: Code?
    /// Of an error: that no other attempt is wanted.
    var isLast = false
    /// Of an error: that a server has sent it.
    var isServers = false
    /// How many messages came before the error.
    var messageCount = 0

    static func good(_ text: String) -> Outcome { Outcome(text: text) }
    static func failed(_ code: Code) -> Outcome { Outcome(code: code) }

    var name: String { self.code?.name ?? "ok" }
  }

  /// What interceptors add to a request.
  private struct Request: Hashable {
    var token: Int?
    var previousAttempts: Int?
    var isAdapted = false
    /// A hash in place of the message.
    var isShort = false
    /// The one that follows when the server has not understood the hash.
    var isWhole = false

    /// What the cache knows it by.
    var key: Request {
      var key = self
      key.isWhole = false
      key.previousAttempts = nil
      return key
    }
  }

  /// Another attempt begins, with this request or the call's own.
  private struct Again: Error {
    var request: Request?
  }

  /// What a call passes, one after the other.
  private enum Step {
    case probe(Int)
    case link(Int)
  }

  /// What an interceptor remembers of one call.
  private struct Memory {
    var attempts = 0
    var shownToken: Int?
    var hasRetried = false
    var lastError: Outcome?
    /// The key of a good answer that the cache has given, or has let pass.
    var given: Request?
  }

  private let chain: RandomChain
  private(set) var events: [String] = []
  /// How many attempts the server has answered, and how many tokens were fetched.
  private(set) var servedCount = 0
  private(set) var tokenCount = 0
  private var token: Int?
  private var cache: [Request: String] = [:]
  private var knowsThatServerLacksHashes = false
  // Of the present call:
  private var call = RandomChain.Call(isStream: false, policy: .cacheFirst)
  private var steps: [Step] = []
  private var memories: [Memory] = []
  private var retriesLeft = 0

  init(_ chain: RandomChain) {
    self.chain = chain
  }

  /// The outcome of the next call.
  mutating func run(_ call: RandomChain.Call) -> Outcome {
    self.call = call
    self.events = []
    self.steps = Self.steps(of: self.chain, isStream: call.isStream)
    self.memories = Array(repeating: Memory(), count: self.chain.links.count)
    self.retriesLeft = self.chain.maximumRetries
    for level in ["call", "message"] {
      for index in self.chain.asyncProbes.indices { self.events.append("\(index) \(level) request") }
    }
    let outcome = self.makeAttempts()
    for level in ["message", "call"] {
      for index in self.chain.asyncProbes.indices.reversed() {
        self.events.append("\(index) \(level) response \(outcome.name)")
      }
    }
    // An error that comes after a good answer means that the answer was none.
    if outcome.code != nil {
      for memory in self.memories { if let key = memory.given { self.cache[key] = nil } }
    }
    return outcome
  }

  private mutating func makeAttempts() -> Outcome {
    var request = Request()
    while true {
      do {
        return try self.enter(0, request)
      } catch {
        request = error.request ?? Request()
      }
    }
  }

  /// The links, with a probe in front of each and a last one behind them. Those that tell users apart stand outside of the
  /// first one of a cache; for streams there is no cache.
  private static func steps(of chain: RandomChain, isStream: Bool) -> [Step] {
    let listed = chain.links.indices.flatMap { [Step.probe($0), .link($0)] } + [.probe(chain.links.count)]
    let firstOfCache = listed.firstIndex { step in
      guard case .link(let index) = step else { return false }
      return chain.links[index] == .cacheRead || chain.links[index] == .cacheWrite
    }
    guard !isStream, let firstOfCache else { return listed }
    let inside = listed[firstOfCache...]
    let tellsUsersApart: (Step) -> Bool = { step in
      guard case .link(let index) = step else { return false }
      switch chain.links[index] {
      case .credentials, .adapters, .adaptersAndRetriers: return true
      default: return false
      }
    }
    return Array(listed[..<firstOfCache]) + inside.filter(tellsUsersApart)
      + inside.filter { !tellsUsersApart($0) }
  }

  /// - Parameter step: The number of the step that is next.
  private mutating func enter(_ step: Int, _ request: Request) throws(Again) -> Outcome {
    guard step < self.steps.count else { return self.serve(request) }
    switch self.steps[step] {
    case .link(let index):
      return try self.pass(index, request, step + 1)
    case .probe(let index):
      self.events.append("\(index) byte request")
      let outcome = try self.enter(step + 1, request)
      self.events.append("\(index) byte response \(outcome.name)")
      return outcome
    }
  }

  private mutating func serve(_ request: Request) -> Outcome {
    if request.isShort { return Outcome(code: .invalidArgument, isServers: true) }
    let answer = self.chain.answers[self.servedCount % self.chain.answers.count]
    self.servedCount += 1
    return switch answer {
    case .good: .good("\(self.servedCount)")
    case .error(let code): Outcome(code: code, isServers: true)
    case .lastError(let code): Outcome(code: code, isLast: true, isServers: true)
    case .lateError(let code):
      Outcome(code: code, isServers: true, messageCount: self.call.isStream ? 1 : 0)
    }
  }

  /// Whether an interceptor that wants another attempt gets one.
  private mutating func takesRetry(after outcome: Outcome) -> Bool {
    guard outcome.messageCount == 0, self.retriesLeft > 0 else { return false }
    self.retriesLeft -= 1
    return true
  }

  // MARK: Interceptors

  private mutating func pass(_ index: Int, _ request: Request, _ next: Int) throws(Again) -> Outcome {
    self.memories[index].attempts += 1
    let attempts = self.memories[index].attempts
    var request = request
    switch self.chain.links[index] {
    case .context, .tracing, .metrics, .logging, .circuitBreaker(isOpen: false),
      .concurrencyLimit(isFull: false):
      return try self.enter(next, request)

    case .circuitBreaker(isOpen: true):
      return Outcome(code: .unavailable, isLast: true)

    case .own(let failedAttempts):
      return attempts <= failedAttempts ? .failed(.unavailable) : try self.enter(next, request)

    case .concurrencyLimit(isFull: true):
      return Outcome(code: .resourceExhausted, isLast: true)

    case .status(let acceptsAnswers):
      let outcome = try self.enter(next, request)
      return outcome.code == nil && !acceptsAnswers && !self.call.isStream ? .failed(.unknown) : outcome

    case .maximumRetries(let maximum):
      guard attempts <= maximum + 1 else {
        var outcome = self.memories[index].lastError ?? .failed(.resourceExhausted)
        outcome.isLast = true
        return outcome
      }
      let outcome = try self.enter(next, request)
      self.memories[index].lastError = outcome.code == nil ? nil : outcome
      return outcome

    case .retry(let maximumAttempts, let hasBudget):
      if attempts > 1 { request.previousAttempts = attempts - 1 }
      let outcome = try self.enter(next, request)
      if outcome.code == .unavailable, !outcome.isLast, hasBudget, attempts < maximumAttempts,
        self.takesRetry(after: outcome)
      {
        throw Again()
      }
      return outcome

    case .adapters(fail: true):
      return .failed(.permissionDenied)

    case .adapters(fail: false):
      self.adapt(&request)
      return try self.enter(next, request)

    case .adaptersAndRetriers:
      self.adapt(&request)
      let outcome = try self.enter(next, request)
      if outcome.code == .aborted, attempts < 3, self.takesRetry(after: outcome) { throw Again() }
      return outcome.code == .notFound && outcome.messageCount == 0 ? .failed(.dataLoss) : outcome

    case .credentials:
      return try self.passCredentials(index, request, next)

    case .persistedRequest:
      return try self.passPersistedRequest(index, request, next)

    case .cacheRead:
      return try self.passCacheRead(index, request, next)

    case .cacheWrite:
      let outcome = try self.enter(next, request)
      if !self.call.isStream, let text = outcome.text {
        self.cache[request.key] = text
      }
      return outcome
    }
  }

  private mutating func adapt(_ request: inout Request) {
    request.isAdapted = true
  }

  private mutating func passCredentials(_ index: Int, _ request: Request, _ next: Int) throws(Again)
    -> Outcome
  {
    var request = request
    if request.token == nil {
      if self.token == nil {
        self.tokenCount += 1
        self.token = self.tokenCount
      }
      request.token = self.token
      self.memories[index].shownToken = self.token
    }
    let outcome = try self.enter(next, request)
    guard outcome.code == .unauthenticated, !self.memories[index].hasRetried else { return outcome }
    self.memories[index].hasRetried = true
    if self.token == self.memories[index].shownToken { self.token = nil }
    if self.takesRetry(after: outcome) { throw Again() }
    return outcome
  }

  private mutating func passPersistedRequest(_ index: Int, _ request: Request, _ next: Int) throws(Again)
    -> Outcome
  {
    guard self.chain.wire == .connect, !self.call.isStream, !request.isWhole,
      !self.knowsThatServerLacksHashes
    else { return try self.enter(next, request) }
    var short = request
    short.isShort = true
    let outcome = try self.enter(next, short)
    guard outcome.isServers else { return outcome }
    self.knowsThatServerLacksHashes = true
    guard self.takesRetry(after: outcome) else { return outcome }
    var whole = request
    whole.isWhole = true
    throw Again(request: whole)
  }

  private mutating func passCacheRead(_ index: Int, _ request: Request, _ next: Int) throws(Again) -> Outcome
  {
    guard !self.call.isStream, self.call.policy != .networkOnly else {
      return try self.enter(next, request)
    }
    let entry = self.cache[request.key]
    if let entry, self.call.policy != .networkFirst {
      self.memories[index].given = request.key
      return .good(entry)
    }
    guard self.call.policy != .cacheOnly else { return .failed(.failedPrecondition) }
    let outcome = try self.enter(next, request)
    switch outcome.code {
    case nil:
      self.memories[index].given = request.key
      return outcome
    case .unavailable, .deadlineExceeded, .resourceExhausted:
      guard let entry else { return outcome }
      self.memories[index].given = request.key
      return .good(entry)
    default:
      return outcome
    }
  }
}
