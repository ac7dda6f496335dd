internal import ConformanceMessages
internal import ConnectNIO
internal import Foundation

/// What of a call concerns its connection. Calls with the same settings share a transport.
struct TransportSettings: Sendable, Hashable {
  var version: NIOHTTPClient.Configuration.HTTPVersion
  /// PEM; empty for cleartext.
  var serverCertificate: Data
  /// PEM; empty for none.
  var clientCertificate: Data
  var clientKey: Data

  init(_ request: CompatRequest) throws(CaseFailure) {
    switch request.httpVersion {
    case .httpVersion1: self.version = .http1Only
    case .httpVersion2: self.version = .http2Only
    default: throw CaseFailure("HTTP version \(request.httpVersion) is not supported")
    }
    self.serverCertificate = request.serverTlsCert
    self.clientCertificate = request.hasClientTlsCreds ? request.clientTlsCreds.cert : Data()
    self.clientKey = request.hasClientTlsCreds ? request.clientTlsCreds.key : Data()
  }

  func configuration() -> NIOHTTPClient.Configuration {
    var configuration = NIOHTTPClient.Configuration(version: self.version)
    // Enough for all calls at the same time: a server usually allows 100 streams or more on each connection. Over
    // HTTP/1.1, calls rather wait a moment than open hundreds of connections at once.
    configuration.limits.http2ConnectionsPerOrigin = 8
    configuration.timeouts.idle = .seconds(10)
    if !self.serverCertificate.isEmpty {
      configuration.tls.trustRoots = .pemBytes(Array(self.serverCertificate))
    }
    if !self.clientCertificate.isEmpty {
      configuration.tls.clientCertificate = .pemBytes(
        chain: Array(self.clientCertificate),
        privateKey: Array(self.clientKey)
      )
    }
    return configuration
  }
}
