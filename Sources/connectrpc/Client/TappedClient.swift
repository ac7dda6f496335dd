import Connect

/// Prints each request as it goes out, on standard error: with the query of a GET, and all fields but those of the transport.
struct TappedClient: HTTPClientInterface {
  let base: any HTTPClientInterface

  var authenticatesClient: Bool { self.base.authenticatesClient }
  var executors: [any CallExecutor] { self.base.executors }

  func endpoint(
    for origin: Origin,
    on executor: (any CallExecutor)?,
    requiresHTTP2: Bool
  ) throws(ConnectError) -> any HTTPEndpoint {
    TappedEndpoint(
      try self.base.endpoint(for: origin, on: executor, requiresHTTP2: requiresHTTP2),
      origin: origin
    )
  }
}

private final class TappedEndpoint: HTTPEndpoint {
  private let base: any HTTPEndpoint
  private let origin: Origin

  init(_ base: any HTTPEndpoint, origin: Origin) {
    self.base = base
    self.origin = origin
  }

  var executor: any CallExecutor { self.base.executor }
  var maximumHeaderListSize: Int { self.base.maximumHeaderListSize }
  var underlying: (any HTTPEndpoint)? { self.base }

  func startStream(_ request: HTTPStreamRequest, handler: any HTTPStreamHandler) -> any HTTPStream {
    WireTap.line(">", "\(request.method.rawValue) \(self.origin)\(request.target)")
    WireTap.show(">", request.headers)
    return self.base.startStream(request, handler: handler)
  }
}
