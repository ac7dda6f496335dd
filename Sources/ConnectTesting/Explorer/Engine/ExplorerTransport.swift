internal import Connect
internal import NIOCore

/// The transport of a run, which leads to the explorer's server.
final class ExplorerTransport: HTTPClientInterface, HTTPEndpoint, TestDouble {
  let executor: any CallExecutor
  private let run: Confined<ExplorerRun>

  init(_ run: ExplorerRun) {
    self.executor = run.executor
    self.run = Confined(run)
  }

  /// The transport of a run, with what the test has put between it and the client.
  static func make(for run: ExplorerRun) -> any HTTPClientInterface {
    let world = ExplorerWorld(run: run)
    return run.settings.transports.reduce(ExplorerTransport(run)) { base, wrap in wrap(world, base) }
  }

  var authenticatesClient: Bool { false }

  func endpoint(
    for origin: Origin,
    on executor: (any CallExecutor)?,
    requiresHTTP2: Bool
  ) throws(ConnectError) -> any HTTPEndpoint { self }

  func startStream(_ request: HTTPStreamRequest, handler: any HTTPStreamHandler) -> any HTTPStream {
    self.run.value.server.begin(request, handler, in: self.run.value)
  }
}

/// Which call a request belongs to.
enum ExplorerCallKey: CallContextKey {
  static let defaultValue = 0
}
