public import Connect
public import ConnectChannels

/// A handler's view of the call that it answers, and the metadata of the response.
///
/// Headers may be set until the first message of a stream is sent, trailers until the handler returns. If the call fails,
/// both are sent, too, beside the metadata of the `ConnectError` that the handler throws.
public struct ServerContext: Sendable {
  /// The method that is called.
  public let method: MethodInfo
  package let wire: any WireCall

  package init(method: MethodInfo, wire: any WireCall) {
    self.method = method
    self.wire = wire
  }

  /// The HTTP request, for example to see whether it came as GET.
  public var request: ServerRequestHead { self.wire.exchange.head }

  /// The request's headers as they went over the wire, those of the protocol included.
  public var requestHeaders: Headers { self.wire.exchange.head.headers }

  /// The address that the call was sent to, so that one handler can be several servers. Nil unless an ``InMemoryTransport``
  /// has a resolver.
  public var serverAddress: EndpointAddress? { self.wire.exchange.head.serverAddress }

  /// The time limit that the client announced; nil for none.
  public var timeout: Duration? { self.wire.timeout }

  /// The name of the codec that the call's messages are in, for example `proto`.
  public var codecName: String { self.wire.codec.name }

  /// The response's headers, besides those of the protocol. Without effect once they are sent.
  public var responseHeaders: Headers {
    get { self.wire.metadata.headers }
    nonmutating set { self.wire.metadata.headers = newValue }
  }

  /// The response's trailers, besides those of the protocol.
  public var responseTrailers: Headers {
    get { self.wire.metadata.trailers }
    nonmutating set { self.wire.metadata.trailers = newValue }
  }

  /// Sends the headers of a stream's response now, before its first message. Does nothing for a unary call of the
  /// Connect protocol, whose status comes first and depends on the outcome.
  ///
  /// - Throws: An error if the client has gone away.
  public func sendHeaders() async throws {
    try await self.wire.sendHeaders()
  }

  /// Waits on the clock of the call's executor.
  ///
  /// - Throws: An error as soon as the client has gone away; `ConnectError` with `deadline_exceeded` when the time
  ///   limit passes.
  public func sleep(for duration: Duration) async throws {
    try await self.wire.exchange.sleep(for: duration)
  }

  /// Returns when the client has gone away or the call has ended.
  public func waitUntilClosed() async {
    await self.wire.exchange.waitUntilClosed()
  }
}
