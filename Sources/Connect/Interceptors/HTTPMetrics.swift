/// What one attempt of a call cost on the wire.
public struct HTTPMetrics: Sendable, Hashable {
  /// 1 for the first attempt.
  public var attempt: Int
  /// From the attempt's start (its request left the interceptors) to its end.
  public var duration: Duration
  /// From the attempt's start until a connection took it; nil if none did.
  public var timeToConnection: Duration?
  /// From the attempt's start to the response's head; nil if none arrived.
  public var timeToHeaders: Duration?
  /// Bytes of the request's body.
  public var requestBodyBytes: Int
  /// Bytes of the response's body as they arrived.
  public var responseBodyBytes: Int
  /// The connection that served it; nil if none did.
  public var connection: HTTPConnectionInfo?
  public var httpStatus: Int?

  public init(
    attempt: Int,
    duration: Duration = .zero,
    timeToConnection: Duration? = nil,
    timeToHeaders: Duration? = nil,
    requestBodyBytes: Int = 0,
    responseBodyBytes: Int = 0,
    connection: HTTPConnectionInfo? = nil,
    httpStatus: Int? = nil
  ) {
    self.attempt = attempt
    self.duration = duration
    self.timeToConnection = timeToConnection
    self.timeToHeaders = timeToHeaders
    self.requestBodyBytes = requestBodyBytes
    self.responseBodyBytes = responseBodyBytes
    self.connection = connection
    self.httpStatus = httpStatus
  }
}
