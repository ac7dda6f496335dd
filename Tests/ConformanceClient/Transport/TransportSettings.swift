internal import ConformanceMessages
internal import Connect
internal import ConnectHTTP3
internal import ConnectNIO
internal import Foundation

/// What of a call concerns its connection. Calls with the same settings share a transport.
struct TransportSettings: Sendable, Hashable {
  var version: NIOHTTPClient.Configuration.HTTPVersion
  var usesHTTP3: Bool
  /// PEM; empty for cleartext.
  var serverCertificate: Data
  /// PEM; empty for none.
  var clientCertificate: Data
  var clientKey: Data

  /// - Parameter usesALPN: Whether the server chooses the version over TLS.
  init(_ request: CompatRequest, usesALPN: Bool) throws(CaseFailure) {
    let version = try HTTPConnectionInfo.Version(request)
    self.usesHTTP3 = version == .http3
    if self.usesHTTP3 {
      guard !request.serverTlsCert.isEmpty else { throw CaseFailure("HTTP/3 without TLS does not exist") }
      self.version = .automatic
    } else if usesALPN, !request.serverTlsCert.isEmpty {
      self.version = .automatic
    } else {
      self.version = version == .http1 ? .http1Only : .http2Only
    }
    self.serverCertificate = request.serverTlsCert
    self.clientCertificate = request.hasClientTlsCreds ? request.clientTlsCreds.cert : Data()
    self.clientKey = request.hasClientTlsCreds ? request.clientTlsCreds.key : Data()
  }

  /// Whether the server chooses the version of HTTP.
  var letsServerChoose: Bool { self.version == .automatic && !self.usesHTTP3 }

  func configuration() -> NIOHTTPClient.Configuration {
    var configuration = NIOHTTPClient.Configuration(version: self.version)
    // Enough for all calls at the same time: a server usually allows 100 streams or more on each connection. Over
    // HTTP/1.1, calls rather wait a moment than open hundreds of connections at once.
    configuration.limits.http2ConnectionsPerAddress = 8
    configuration.timeouts.idle = .seconds(10)
    if self.usesHTTP3 { configuration.http3 = .alone }
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

extension HTTPConnectionInfo.Version {
  /// The version that the case asks for.
  init(_ request: CompatRequest) throws(CaseFailure) {
    switch request.httpVersion {
    case .httpVersion1: self = .http1
    case .httpVersion2: self = .http2
    case .httpVersion3: self = .http3
    default: throw CaseFailure("HTTP version \(request.httpVersion) is not supported")
    }
  }
}
