public import Connect

/// Where the time of one call went, and what it cost. Made by a ``CallExplainer``; `description` has it all as text.
public struct CallExplanation: Sendable {
  /// The time that one interceptor took until it proceeded, in all attempts, without what is inside of it.
  public struct InterceptorTime: Sendable, Hashable {
    /// The name of its type.
    public var name: String
    /// On the way down: with the request and its messages.
    public var request = Duration.zero
    /// On the way up: with the response, and each of its messages.
    public var response = Duration.zero
  }

  /// When the messages of one attempt passed, in one direction.
  public struct Messages: Sendable, Hashable {
    /// How many times are kept at most.
    public static let maximumTimes = 100

    /// How many have passed.
    public private(set) var count = 0
    /// When each of the first ``maximumTimes`` passed, from the attempt's start.
    public private(set) var times: [Duration] = []
    /// When the last one passed, from the attempt's start; nil if there was none.
    public private(set) var last: Duration?

    package init() {}

    package mutating func note(at time: Duration) {
      self.count += 1
      self.last = time
      if self.times.count < Self.maximumTimes { self.times.append(time) }
    }
  }

  /// An exchange that did not decide its attempt's outcome: one of several hedges, a protocol that did not get through, or a
  /// request that the server refused to process and that was sent again.
  public struct OtherExchange: Sendable, Hashable {
    /// From the start of the call.
    public var start: Duration
    /// What it cost on the wire.
    public var metrics: HTTPMetrics

    package init(start: Duration, metrics: HTTPMetrics) {
      self.start = start
      self.metrics = metrics
    }
  }

  /// One attempt on the network.
  public struct Attempt: Sendable, Hashable {
    /// When it left the interceptors, from the start of the call.
    public var start: Duration
    /// How it ended; nil if it was abandoned, or has not ended yet.
    public var code: Code?
    /// The bytes of the request's messages, before compression.
    public var requestMessageBytes = 0
    /// The bytes of the response's messages, after decompression.
    public var responseMessageBytes = 0
    /// When the request's messages left the interceptors: that of a unary call at the start.
    public var requestMessages = Messages()
    /// When the response's messages arrived.
    public var responseMessages = Messages()
    /// What it cost on the wire; nil if it has not ended yet. Of several exchanges, the one that decided the outcome.
    public var metrics: HTTPMetrics?
    /// When the exchange of ``metrics`` began, from the start of the call: later than ``start`` if a hedge decided the outcome.
    public var exchangeStart: Duration
    /// The other exchanges, once they have ended.
    public var otherExchanges: [OtherExchange] = []

    package init(start: Duration) {
      self.start = start
      self.exchangeStart = start
    }
  }

  /// `package.Service/Method`.
  public var method = ""
  /// The host that the call was made to.
  public var server = ""
  /// How the call ended; nil if it has not.
  public var code: Code?
  /// From the first interceptor to the end of the call, or until now.
  public var duration = Duration.zero
  /// Outermost first.
  public var interceptors: [InterceptorTime] = []
  /// The time it took to encode messages.
  public var encoding = Duration.zero
  /// The time it took to decode messages.
  public var decoding = Duration.zero
  /// In the order of their start. None if an interceptor answered the call.
  public var attempts: [Attempt] = []

  package init() {}
}

// MARK: - Text

extension CallExplanation: CustomStringConvertible {
  /// Several lines, times in milliseconds.
  public var description: String {
    var lines = [
      "\(self.method) at \(self.server): \(self.code?.name ?? "not over") after \(self.duration.text)"
    ]
    for interceptor in self.interceptors {
      lines.append(
        "  \(interceptor.name): \(interceptor.request.text) down, \(interceptor.response.text) up"
      )
    }
    lines.append("  encoding \(self.encoding.text), decoding \(self.decoding.text)")
    for (index, attempt) in self.attempts.enumerated() {
      lines.append("  attempt \(index + 1), after \(attempt.start.text): \(attempt.code?.name ?? "given up")")
      lines.append(contentsOf: attempt.metrics?.lines(attempt) ?? [])
    }
    return lines.joined(separator: "\n")
  }
}

extension HTTPMetrics {
  fileprivate func lines(_ attempt: CallExplanation.Attempt) -> [String] {
    var lines: [String] = []
    if let connection = self.connection {
      let kind = connection.isReused ? "an open connection" : "a new connection"
      let peer = connection.remoteAddress.map { " to \($0)" } ?? ""
      let waited = self.timeToConnection ?? .zero
      lines.append("\(waited.text) until \(kind), \(connection.version.rawValue)\(peer)")
      if let setup = connection.setup {
        lines.append(
          "  name resolution \(setup.nameResolution.text), connecting \(setup.connecting.text)"
            + (setup.tls.map { ", TLS \($0.text)" } ?? "") + ", queueing \((self.queueing ?? .zero).text)"
        )
      }
    } else {
      lines.append("no connection")
    }
    if let time = self.timeToHeaders {
      lines.append("\(time.text) until the response's head" + (self.httpStatus.map { ", HTTP \($0)" } ?? ""))
    }
    lines.append("\(self.duration.text) until its end")
    lines.append(
      "sent \(self.requestBodyBytes) bytes for \(attempt.requestMessageBytes) of messages"
        + (self.requestEncoding.map { " in \($0)" } ?? "")
        + ", received \(self.responseBodyBytes) for \(attempt.responseMessageBytes)"
        + (self.responseEncoding.map { " in \($0)" } ?? "")
    )
    return lines.map { "    \($0)" }
  }
}

extension Duration {
  /// In milliseconds with three decimals.
  fileprivate var text: String { "\(self.milliseconds) ms" }
}
