/// What one attempt of a call cost on the wire.
public struct HTTPMetrics: Sendable, Hashable {
  /// The number of the attempt: 1 for the first.
  public var attempt: Int
  /// From the attempt's start (its request left the interceptors) to its end.
  public var duration: Duration
  /// From the attempt's start until a connection took the attempt; nil if none did.
  public var timeToConnection: Duration?
  /// From the attempt's start to the response's head; nil if none arrived.
  public var timeToHeaders: Duration?
  /// The size of the request's body, in bytes, as it was sent.
  public var requestBodyBytes: Int
  /// The size of the response's body, in bytes, as it arrived.
  public var responseBodyBytes: Int
  /// The connection that served the attempt; nil if none did.
  public var connection: HTTPConnectionInfo?
  /// The HTTP status of the response; nil if no response arrived.
  public var httpStatus: Int?
  /// The name of the compression that the request announces for its messages, for example `gzip`. Nil for none, for
  /// GET, and for calls without a ``CallOptions/arrangement``, where it is not recorded.
  public var requestEncoding: String?
  /// The name of the compression that the response announces for its messages; nil as for the request.
  public var responseEncoding: String?

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
    self.attempt = attempt
    self.duration = duration
    self.timeToConnection = timeToConnection
    self.timeToHeaders = timeToHeaders
    self.requestBodyBytes = requestBodyBytes
    self.responseBodyBytes = responseBodyBytes
    self.connection = connection
    self.httpStatus = httpStatus
    self.requestEncoding = requestEncoding
    self.responseEncoding = responseEncoding
  }
}
