public import ConnectNIO
public import ServiceLifecycle

/// Shuts a client down together with the other services of a program.
///
/// ```swift
/// let httpClient = NIOHTTPClient()
/// let group = ServiceGroup(
///   services: [HTTPClientService(httpClient), worker],
///   gracefulShutdownSignals: [.sigterm],
///   logger: logger
/// )
/// try await group.run()
/// ```
///
/// A `ServiceGroup` shuts its services down one after the other, starting with the last of the list. So list the client
/// in front of the services that make calls with it. These services, and with them their calls, have ended when the
/// group shuts the client down.
///
/// The client needs no service to work: it makes calls before the group runs, and without any group.
public struct HTTPClientService: Service {
  private let client: NIOHTTPClient
  private let limit: Duration

  /// A service that shuts `client` down when the service group does.
  ///
  /// - Parameters:
  ///   - client: The client to shut down. It can make calls before the service runs.
  ///   - limit: How long calls in flight may take to finish after a graceful shutdown has begun. Calls that
  ///     take longer fail with `unavailable`.
  public init(_ client: NIOHTTPClient, within limit: Duration = .seconds(30)) {
    self.client = client
    self.limit = limit
  }

  /// Waits for a graceful shutdown, and then shuts the client down; see `NIOHTTPClient.shutdown(within:)`.
  ///
  /// When the task is cancelled, before or during the shutdown, the calls in flight fail with `unavailable` at once.
  /// A group cancels its services when another service fails, and after `maximumGracefulShutdownDuration`.
  ///
  /// Returns when the client has no connection left. It returns also after cancellation, so that the group throws the
  /// error of the failed service.
  public func run() async {
    // Throws if the task is cancelled. The handler below detects the cancellation too.
    try? await gracefulShutdown()
    await withTaskCancellationHandler {
      await self.client.shutdown(within: self.limit)
    } onCancel: {
      Task { await self.client.shutdown(within: .zero) }
    }
  }
}
