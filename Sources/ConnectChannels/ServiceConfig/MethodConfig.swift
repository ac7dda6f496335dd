public import Connect

/// Rules for the calls of some methods. Calls of a `ProtocolClient` follow them, over each protocol.
public struct MethodConfig: Hashable, Sendable {
  /// Which methods: one, all of a service, or all.
  public struct Name: Hashable, Sendable {
    /// The service's full name, for example `pkg.Service`; empty for all services, then `method` is empty as well.
    public var service: String
    /// The method's own name; empty for all methods of the service.
    public var method: String

    /// A name of one method, of all methods of a service, or, without arguments, of all methods.
    public init(service: String = "", method: String = "") {
      self.service = service
      self.method = method
    }
  }

  /// The methods that the rules apply to. Without names the rules apply to nothing.
  public var names: [Name]
  /// The longest time for a call; nil for no rule. The shorter of this timeout and the caller's own counts.
  public var timeout: Duration?
  /// Whether calls wait while no server can be reached; nil for no rule. `CallOptions.waitForReady` takes precedence,
  /// and so does `ProtocolClientConfig.waitForReady` if it is true.
  public var waitsForReady: Bool?
  /// The largest request message, in bytes; zero allows only empty ones; nil for no rule. The client's own limit
  /// counts if it is lower.
  public var maximumRequestMessageSize: Int?
  /// The largest response message, in bytes; nil for no rule. The client's own limit counts if it is lower.
  public var maximumResponseMessageSize: Int?
  /// Whether failed or slow calls get further attempts; nil for no rule.
  public var attempts: AttemptPolicy?

  /// Whether a call has more attempts than one.
  public enum AttemptPolicy: Hashable, Sendable {
    /// A failed call is made again after a backoff.
    case retry(RetryPolicy)
    /// A slow call gets further attempts while earlier ones still run.
    case hedging(HedgingPolicy)
  }

  /// Rules for the methods of `names`. What is nil is left to the client.
  public init(
    names: [Name],
    timeout: Duration? = nil,
    waitsForReady: Bool? = nil,
    maximumRequestMessageSize: Int? = nil,
    maximumResponseMessageSize: Int? = nil,
    attempts: AttemptPolicy? = nil
  ) {
    self.names = names
    self.timeout = timeout
    self.waitsForReady = waitsForReady
    self.maximumRequestMessageSize = maximumRequestMessageSize
    self.maximumResponseMessageSize = maximumResponseMessageSize
    self.attempts = attempts
  }

  /// How failed calls are repeated (gRFC A6). A `RetryInterceptor` in the client's list follows this policy in place of
  /// its own, whether or not the method is marked as idempotent. The interceptor's budget and the client's cap on
  /// retries hold as well.
  public struct RetryPolicy: Hashable, Sendable {
    /// How many attempts a call makes at most, including the first: 2 to 5.
    public var maximumAttempts: Int
    /// The wait before retry *n* is random, from zero to
    /// `min(initialBackoff × backoffMultiplier^(n-1), maximumBackoff)`.
    public var initialBackoff: Duration
    /// The longest wait, before it is made random.
    public var maximumBackoff: Duration
    /// By how much the wait grows with each retry.
    public var backoffMultiplier: Double
    /// The codes after which a call is repeated. At least one code; never `ok`.
    public var retryableCodes: Set<Code>

    /// A policy. Its values are not checked here.
    public init(
      maximumAttempts: Int,
      initialBackoff: Duration,
      maximumBackoff: Duration,
      backoffMultiplier: Double,
      retryableCodes: Set<Code>
    ) {
      self.maximumAttempts = maximumAttempts
      self.initialBackoff = initialBackoff
      self.maximumBackoff = maximumBackoff
      self.backoffMultiplier = backoffMultiplier
      self.retryableCodes = retryableCodes
    }
  }

  /// How a unary call is sent several times before its answer is there (gRFC A6). The methods have to be safe to
  /// repeat. A policy of the program for the method (`CallOptions.hedging`, `ProtocolClientConfig.hedging`) takes
  /// precedence. Streams do not hedge.
  public struct HedgingPolicy: Hashable, Sendable {
    /// How many attempts a call makes at most, including the first: 2 to 5.
    public var maximumAttempts: Int
    /// The time between attempts. Zero sends all of them at once.
    public var hedgingDelay: Duration
    /// The codes after which the other attempts go on; every other code ends the call. Never `ok`.
    public var nonFatalCodes: Set<Code>

    /// A policy. Its values are not checked here.
    public init(maximumAttempts: Int, hedgingDelay: Duration = .zero, nonFatalCodes: Set<Code> = []) {
      self.maximumAttempts = maximumAttempts
      self.hedgingDelay = hedgingDelay
      self.nonFatalCodes = nonFatalCodes
    }
  }

  /// The highest number of attempts that counts: a service config may come from DNS (gRFC A6).
  public static let maximumAttempts = 5
}

extension MethodConfig.Name: CustomStringConvertible {
  public var description: String {
    if self.service.isEmpty { return "the name for all methods" }
    return "\(self.service)/\(self.method.isEmpty ? "*" : self.method)"
  }
}

// MARK: - JSON

extension MethodConfig {
  init(_ node: JSONNode) throws(ServiceConfigError) {
    self.init(names: [])
    for name in try node.member("name")?.elements() ?? [] { self.names.append(try Name(name)) }
    self.timeout = try node.member("timeout")?.duration()
    self.waitsForReady = try node.member("waitForReady")?.bool()
    let sizes = 0...Int(UInt32.max)
    self.maximumRequestMessageSize = try node.member("maxRequestMessageBytes")?.integer(in: sizes)
    self.maximumResponseMessageSize = try node.member("maxResponseMessageBytes")?.integer(in: sizes)
    let retry = try node.member("retryPolicy")
    let hedging = try node.member("hedgingPolicy")
    if retry != nil, hedging != nil {
      throw node.error("\"retryPolicy\" and \"hedgingPolicy\" exclude each other; remove one of them")
    }
    if let retry { self.attempts = .retry(try RetryPolicy(retry)) }
    if let hedging { self.attempts = .hedging(try HedgingPolicy(hedging)) }
  }

  fileprivate static func attempts(_ node: JSONNode) throws(ServiceConfigError) -> Int {
    min(try node.required("maxAttempts").integer(in: 2...Int(UInt32.max)), self.maximumAttempts)
  }

  fileprivate static func codes(_ node: JSONNode) throws(ServiceConfigError) -> Set<Code> {
    var codes: Set<Code> = []
    for element in try node.elements() { codes.insert(try Code(element)) }
    return codes
  }
}

extension MethodConfig.Name {
  init(_ node: JSONNode) throws(ServiceConfigError) {
    self.init(
      service: try node.member("service")?.string() ?? "",
      method: try node.member("method")?.string() ?? ""
    )
    if self.service.isEmpty, !self.method.isEmpty {
      throw node.error("it has a method and no service; add \"service\"")
    }
  }
}

extension MethodConfig.RetryPolicy {
  init(_ node: JSONNode) throws(ServiceConfigError) {
    let multiplier = try node.required("backoffMultiplier")
    let codes = try node.required("retryableStatusCodes")
    self.init(
      maximumAttempts: try MethodConfig.attempts(node),
      initialBackoff: try node.required("initialBackoff").positiveDuration(),
      maximumBackoff: try node.required("maxBackoff").positiveDuration(),
      backoffMultiplier: try multiplier.number(),
      retryableCodes: try MethodConfig.codes(codes)
    )
    guard self.backoffMultiplier > 0 else {
      throw multiplier.error("has to be greater than 0, and is \(self.backoffMultiplier)")
    }
    guard !self.retryableCodes.isEmpty else {
      throw codes.error("has to have at least one code, such as \"UNAVAILABLE\"")
    }
  }
}

extension MethodConfig.HedgingPolicy {
  init(_ node: JSONNode) throws(ServiceConfigError) {
    self.init(maximumAttempts: try MethodConfig.attempts(node))
    if let delay = try node.member("hedgingDelay") { self.hedgingDelay = try delay.duration() }
    if let codes = try node.member("nonFatalStatusCodes") {
      self.nonFatalCodes = try MethodConfig.codes(codes)
    }
  }
}

extension JSONNode {
  fileprivate func positiveDuration() throws(ServiceConfigError) -> Duration {
    let duration = try self.duration()
    guard duration > .zero else { throw self.error("has to be greater than 0s") }
    return duration
  }
}
