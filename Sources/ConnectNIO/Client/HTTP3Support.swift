package import Connect
package import ConnectChannels
package import Logging
package import NIOCore

/// How a client uses HTTP/3, for ``NIOHTTPClient/Configuration/http3``. The module `ConnectHTTP3` has the values:
///
/// ```swift
/// import ConnectHTTP3
///
/// let client = NIOHTTPClient(configuration: .init(http3: .discovered))
/// ```
///
/// Programs that do not import it link no QUIC, and need none of its packages.
public struct HTTP3Support: Sendable {
  /// Makes the opener of the connections to an origin.
  package var makeOpener: @Sendable (HTTP3Environment) -> any ConnectionOpener
  /// The largest header or trailer list of a response.
  package var maximumHeaderListSize: Int
  /// Whether HTTP/3 is used beside TCP where it is found. If false, HTTP/3 is the only version.
  package var isDiscovered: Bool

  package init(
    isDiscovered: Bool,
    maximumHeaderListSize: Int,
    makeOpener: @escaping @Sendable (HTTP3Environment) -> any ConnectionOpener
  ) {
    self.isDiscovered = isDiscovered
    self.maximumHeaderListSize = maximumHeaderListSize
    self.makeOpener = makeOpener
  }
}

/// What a client provides for HTTP/3 connections to an origin.
package struct HTTP3Environment: Sendable {
  package var origin: Origin
  package var configuration: NIOHTTPClient.Configuration
  package var tls: ClusterTLS
  package var executor: any CallExecutor
  package var eventLoop: any EventLoop
  package var logger: Logger
}
