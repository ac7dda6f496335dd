internal import Connect
internal import NIOCore

/// A transport around another one, which tells when a stream has a connection.
struct StartObserver: HTTPClientInterface {
  private let base: any HTTPClientInterface
  private let onStart: @Sendable () -> Void

  init(_ base: any HTTPClientInterface, onStart: @escaping @Sendable () -> Void) {
    self.base = base
    self.onStart = onStart
  }

  var authenticatesClient: Bool { self.base.authenticatesClient }
  var executors: [any CallExecutor] { self.base.executors }

  func endpoint(
    for origin: Origin,
    on executor: (any CallExecutor)?,
    requiresHTTP2: Bool
  ) throws(ConnectError) -> any HTTPEndpoint {
    Endpoint(
      try self.base.endpoint(for: origin, on: executor, requiresHTTP2: requiresHTTP2),
      onStart: self.onStart
    )
  }

  private final class Endpoint: HTTPEndpoint {
    let base: any HTTPEndpoint
    private let onStart: @Sendable () -> Void

    init(_ base: any HTTPEndpoint, onStart: @escaping @Sendable () -> Void) {
      self.base = base
      self.onStart = onStart
    }

    var executor: any CallExecutor { self.base.executor }
    var maximumHeaderListSize: Int { self.base.maximumHeaderListSize }
    var underlying: (any HTTPEndpoint)? { self.base }

    func startStream(_ request: HTTPStreamRequest, handler: any HTTPStreamHandler) -> any HTTPStream {
      self.base.startStream(request, handler: Handler(handler, onStart: self.onStart))
    }
  }

  private final class Handler: HTTPStreamHandler {
    private let base: any HTTPStreamHandler
    private let onStart: @Sendable () -> Void

    init(_ base: any HTTPStreamHandler, onStart: @escaping @Sendable () -> Void) {
      self.base = base
      self.onStart = onStart
    }

    func streamDidStart(on connection: HTTPConnectionInfo) {
      self.onStart()
      self.base.streamDidStart(on: connection)
    }

    func streamDidBecomeWritable() { self.base.streamDidBecomeWritable() }
    func streamDidReceive(_ head: HTTPResponseHead) { self.base.streamDidReceive(head) }
    func streamDidReceive(_ bytes: ByteBuffer) { self.base.streamDidReceive(bytes) }
    func streamDidEnd(trailers: Headers) { self.base.streamDidEnd(trailers: trailers) }
    func streamDidFail(_ failure: HTTPStreamFailure) { self.base.streamDidFail(failure) }
  }
}
