/// What one attempt of a call cost on the wire.
public struct HTTPMetrics: Sendable, Hashable {
  private var shared: Shared

  /// The number of the attempt: 1 for the first.
  public var attempt: Int {
    get { self.shared.values.attempt }
    set { self.values.attempt = newValue }
  }
  /// From the attempt's start (its request left the interceptors) to its end.
  public var duration: Duration {
    get { self.shared.values.duration }
    set { self.values.duration = newValue }
  }
  /// From the attempt's start until a connection took the attempt; nil if none did.
  public var timeToConnection: Duration? {
    get { self.shared.values.timeToConnection }
    set { self.values.timeToConnection = newValue }
  }
  /// From the attempt's start to the response's head; nil if none arrived.
  public var timeToHeaders: Duration? {
    get { self.shared.values.timeToHeaders }
    set { self.values.timeToHeaders = newValue }
  }
  /// The size of the request's body, in bytes, as it was sent.
  public var requestBodyBytes: Int {
    get { self.shared.values.requestBodyBytes }
    set { self.values.requestBodyBytes = newValue }
  }
  /// The size of the response's body, in bytes, as it arrived.
  public var responseBodyBytes: Int {
    get { self.shared.values.responseBodyBytes }
    set { self.values.responseBodyBytes = newValue }
  }
  /// The connection that served the attempt; nil if none did.
  public var connection: HTTPConnectionInfo? {
    get { self.shared.values.connection }
    set { self.values.connection = newValue }
  }
  /// The HTTP status of the response; nil if no response arrived.
  public var httpStatus: Int? {
    get { self.shared.values.httpStatus }
    set { self.values.httpStatus = newValue }
  }
  /// The name of the compression that the request announces for its messages, for example `gzip`. Nil for none, for
  /// GET, and for calls that no `CallExplainer` explains, where it is not recorded.
  public var requestEncoding: String? {
    get { self.shared.values.requestEncoding }
    set { self.values.requestEncoding = newValue }
  }
  /// The name of the compression that the response announces for its messages; nil as for the request.
  public var responseEncoding: String? {
    get { self.shared.values.responseEncoding }
    set { self.values.responseEncoding = newValue }
  }

  /// How long the attempt waited while no connection was being opened for it, as far as is known; nil if no connection
  /// took it.
  public var queueing: Duration? {
    guard let time = self.timeToConnection else { return nil }
    return max(time.clamped - (self.connection?.setup?.total ?? .zero), .zero)
  }

  /// Metrics with the given facts, for tests of hooks and for hooks that change metrics. `attempt` counts from 1.
  public init(
    attempt: Int,
    duration: Duration = .zero,
    timeToConnection: Duration? = nil,
    timeToHeaders: Duration? = nil,
    requestBodyBytes: Int = 0,
    responseBodyBytes: Int = 0,
    connection: HTTPConnectionInfo? = nil,
    httpStatus: Int? = nil,
    requestEncoding: String? = nil,
    responseEncoding: String? = nil
  ) {
    self.init(
      Values(
        attempt: attempt,
        duration: duration,
        timeToConnection: timeToConnection,
        timeToHeaders: timeToHeaders,
        requestBodyBytes: requestBodyBytes,
        responseBodyBytes: responseBodyBytes,
        connection: connection,
        httpStatus: httpStatus,
        requestEncoding: requestEncoding,
        responseEncoding: responseEncoding
      )
    )
  }

  init(_ values: Values) { self.shared = Shared(values) }

  public static func == (left: HTTPMetrics, right: HTTPMetrics) -> Bool {
    left.shared === right.shared || left.shared.values == right.shared.values
  }

  public func hash(into hasher: inout Hasher) { hasher.combine(self.shared.values) }

  // MARK: Storage

  var values: Values {
    get { self.shared.values }
    set { self.shared = Shared(newValue) }
  }

  struct Values: Sendable, Hashable {
    var attempt: Int
    var duration = Duration.zero
    var timeToConnection: Duration?
    var timeToHeaders: Duration?
    var requestBodyBytes = 0
    var responseBodyBytes = 0
    var connection: HTTPConnectionInfo?
    var httpStatus: Int?
    var requestEncoding: String?
    var responseEncoding: String?
  }

  /// The values, which copies share: hooks pass metrics on from one to the next.
  private final class Shared: Sendable {
    let values: Values

    init(_ values: Values) { self.values = values }
  }
}
