import Connect
import ConnectInterceptors
import TestSupport

/// A chain of ready-made interceptors, and what happens to the calls through it.
struct RandomChain: Sendable {
  /// A ready-made interceptor, with what decides on what it does here.
  enum Link: Sendable, Hashable {
    case context, tracing, metrics, logging
    case status(acceptsAnswers: Bool)
    case credentials
    case cacheRead, cacheWrite
    case persistedRequest
    case retry(maximumAttempts: Int, hasBudget: Bool)
    case adapters(fail: Bool)
    case adaptersAndRetriers
    case circuitBreaker(isOpen: Bool)
    case concurrencyLimit(isFull: Bool)
    case maximumRetries(Int)
    /// None of the ready-made: fails the first attempts of a call.
    case own(failedAttempts: Int)
  }

  /// What the server does with an attempt.
  enum Answer: Sendable, Hashable {
    case good
    case error(Code)
    /// An error, and no other attempt is wanted.
    case lastError(Code)
    /// An error after the first message, in a stream.
    case lateError(Code)
  }

  struct Call: Sendable {
    var isStream: Bool
    var policy: CachePolicy
  }

  enum Wire: CaseIterable, Sendable { case connect, grpc, grpcWeb }

  /// Outermost first.
  var links: [Link] = []
  /// Around each link a probe stands; whether it is one in async form.
  var asyncProbes: [Bool] = []
  /// For one attempt after the other, of all calls.
  var answers: [Answer] = []
  var calls: [Call] = []
  var maximumRetries = 0
  var wire = Wire.connect

  init(using generator: inout SeededGenerator) {
    var links: [Link] = [
      .context, .tracing, .metrics, .logging,
      .status(acceptsAnswers: Int.random(in: 0..<4, using: &generator) > 0),
      .credentials, .cacheRead, .cacheWrite, .persistedRequest,
      .retry(
        maximumAttempts: Int.random(in: 1...4, using: &generator),
        hasBudget: Int.random(in: 0..<4, using: &generator) > 0
      ),
      Bool.random(using: &generator)
        ? .adaptersAndRetriers : .adapters(fail: Int.random(in: 0..<4, using: &generator) == 0),
      .circuitBreaker(isOpen: Int.random(in: 0..<8, using: &generator) == 0),
      .concurrencyLimit(isFull: Int.random(in: 0..<8, using: &generator) == 0),
      .maximumRetries(Int.random(in: 0...2, using: &generator)),
      .own(failedAttempts: Int.random(in: 0...2, using: &generator)),
    ]
    links.shuffle(using: &generator)
    self.links = Array(links.prefix(Int.random(in: 1...links.count, using: &generator)))
    self.asyncProbes = (0...self.links.count).map { _ in Int.random(in: 0..<6, using: &generator) == 0 }
    self.answers = (0..<8).map { _ in Self.answer(&generator) }
    self.calls = (0..<3).map { _ in
      Call(
        isStream: Int.random(in: 0..<3, using: &generator) == 0,
        policy: [.cacheFirst, .cacheFirst, .networkFirst, .networkOnly, .cacheOnly]
          .randomElement(using: &generator) ?? .cacheFirst
      )
    }
    self.maximumRetries = Int.random(in: 0...6, using: &generator)
    self.wire = Wire.allCases.randomElement(using: &generator) ?? .connect
  }

  private static func answer(_ generator: inout SeededGenerator) -> Answer {
    let codes: [Code] = [
      .unavailable, .unavailable, .unauthenticated, .aborted, .notFound, .resourceExhausted,
    ]
    let code = codes.randomElement(using: &generator) ?? .unavailable
    return switch Int.random(in: 0..<10, using: &generator) {
    case 0..<4: .good
    case 4: .lastError(code)
    case 5: .lateError(code)
    default: .error(code)
    }
  }
}
