internal import Connect
internal import NIOCore

/// A transport that checks which version of HTTP each stream of a case goes over.
struct VersionCheckingTransport: HTTPClientInterface {
  let transport: any HTTPClientInterface
  let expected: HTTPConnectionInfo.Version
  let invariants: Invariants

  func endpoint(
    for origin: Origin,
    on executor: (any CallExecutor)?,
    requiresHTTP2: Bool
  ) throws(ConnectError) -> any HTTPEndpoint {
    let endpoint = try self.transport.endpoint(for: origin, on: executor, requiresHTTP2: requiresHTTP2)
    return Endpoint(endpoint: endpoint, expected: self.expected, invariants: self.invariants)
  }

  private final class Endpoint: HTTPEndpoint {
    private let endpoint: any HTTPEndpoint
    private let expected: HTTPConnectionInfo.Version
    private let invariants: Invariants

    init(endpoint: any HTTPEndpoint, expected: HTTPConnectionInfo.Version, invariants: Invariants) {
      self.endpoint = endpoint
      self.expected = expected
      self.invariants = invariants
    }

    var executor: any CallExecutor { self.endpoint.executor }
    var underlying: (any HTTPEndpoint)? { self.endpoint }
    var maximumHeaderListSize: Int { self.endpoint.maximumHeaderListSize }

    func startStream(_ request: HTTPStreamRequest, handler: any HTTPStreamHandler) -> any HTTPStream {
      let checking = Handler(handler: handler, expected: self.expected, invariants: self.invariants)
      return self.endpoint.startStream(request, handler: checking)
    }
  }

  /// Tells the stream's handler everything.
  private final class Handler: HTTPStreamHandler {
    private let handler: any HTTPStreamHandler
    private let expected: HTTPConnectionInfo.Version
    private let invariants: Invariants

    init(handler: any HTTPStreamHandler, expected: HTTPConnectionInfo.Version, invariants: Invariants) {
      self.handler = handler
      self.expected = expected
      self.invariants = invariants
    }

    func streamDidStart(on connection: HTTPConnectionInfo) {
      if connection.version != self.expected {
        self.invariants.report(
          "the call goes over \(connection.version.rawValue), and the case asks for \(self.expected.rawValue)"
        )
      }
      self.handler.streamDidStart(on: connection)
    }

    func streamDidBecomeWritable() { self.handler.streamDidBecomeWritable() }

    func streamDidReceive(_ head: HTTPResponseHead) { self.handler.streamDidReceive(head) }

    func streamDidReceive(_ bytes: ByteBuffer) { self.handler.streamDidReceive(bytes) }

    func streamDidEnd(trailers: Headers) { self.handler.streamDidEnd(trailers: trailers) }

    func streamDidFail(_ failure: HTTPStreamFailure) { self.handler.streamDidFail(failure) }
  }
}
