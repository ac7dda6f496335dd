public import Connect

/// One invocation of a hook that an ``InterceptorProbe`` saw.
public struct HookEvent: Sendable {
  /// What a hook works on. The raw value is its name in descriptions.
  public enum Level: String, Sendable, Hashable, CaseIterable {
    /// The call as a whole; see `CallFunction`.
    case call
    /// The method's own types; see `UnaryMessageFunction` and `StreamMessageFunction`.
    case message
    /// Encoded messages; see `UnaryFunction` and `StreamFunction`.
    case byte
    /// The async form of an interceptor, around messages.
    case async
  }

  /// Which hook it is. The raw value is its name in descriptions.
  public enum Hook: String, Sendable, Hashable {
    /// The request of a unary call, or the head of a stream's request.
    case request
    /// A message of a stream's request.
    case requestMessage = "request message"
    /// The response of a unary call.
    case response
    /// Headers, a message, or the end of a response stream.
    case result
    /// How a call ends, at the level of call hooks.
    case outcome
    /// The metrics of an attempt.
    case metrics
  }

  /// The name that the probe has at that place.
  public var interceptor: String
  /// What the hook works on.
  public var level: Level
  /// Which hook it is.
  public var hook: Hook
  /// The hook's argument, of the type at its level: `HTTPRequest`, `ResponseMessage`, `HTTPResponse`, `StreamResult`,
  /// `CallOutcome`, `HTTPMetrics`, a request message.
  public var value: any Sendable
  /// When, on the clock of the probe's executor; nil if it has none.
  public var time: Duration?

  /// An event, for tests of code that reads events.
  public init(
    interceptor: String,
    level: Level,
    hook: Hook,
    value: any Sendable,
    time: Duration? = nil
  ) {
    self.interceptor = interceptor
    self.level = level
    self.hook = hook
    self.value = value
    self.time = time
  }

  /// The event without what passed: `A message request`, `B byte response unavailable`, `A message result end ok`.
  public var outline: String {
    let title = "\(self.interceptor) \(self.level.rawValue) \(self.hook.rawValue)"
    let outcome = (self.value as? any OutcomeValue)?.outcome
    return outcome.map { "\(title) \($0)" } ?? title
  }
}

/// The event on one line: `A message request: hello`, `B byte response unavailable: try later`.
extension HookEvent: CustomStringConvertible {
  public var description: String {
    let title = "\(self.interceptor) \(self.level.rawValue) \(self.hook.rawValue)"
    let text = describe(self.value)
    if self.value is any OutcomeValue { return "\(title) \(text)" }
    return text.isEmpty ? title : "\(title): \(text)"
  }
}

extension Sequence<HookEvent> {
  /// The events, one in each line, so that a failed comparison with a text shows what differs.
  public var transcript: String {
    self.map(\.description).joined(separator: "\n")
  }

  /// The same with the time of each event before it.
  public var timeline: String {
    self.map { event in event.time.map { "\($0) \(event)" } ?? event.description }.joined(separator: "\n")
  }

  /// The events without what passed, one text for each.
  public var outline: [String] {
    self.map(\.outline)
  }

  /// What passed in the events whose value has this type.
  public func values<Value>(_ type: Value.Type = Value.self) -> [Value] {
    self.compactMap { $0.value as? Value }
  }
}

/// A value that says how a call, or a part of it, went.
protocol OutcomeValue {
  var outcome: String { get }
}

extension HTTPResponse: OutcomeValue {
  var outcome: String { (self.error?.code ?? self.code).name }
}

extension ResponseMessage: OutcomeValue {
  var outcome: String { (self.error?.code ?? self.code).name }
}

extension CallOutcome: OutcomeValue {
  var outcome: String { (self.error?.code ?? self.code).name }
}

extension StreamResult: OutcomeValue {
  var outcome: String {
    switch self {
    case .headers: "headers"
    case .message: "message"
    case .complete(let code, let error, _): "end \((error?.code ?? code).name)"
    }
  }
}
