package import Connect
internal import NIOCore

/// What a connection tells the streams that it serves about itself. Confined to the channel's event loop.
package struct ConnectionFacts {
  private let channel: any Channel
  private let version: HTTPConnectionInfo.Version
  /// As text.
  package lazy var remoteAddress = self.channel.remoteAddress.flatMap { RemoteAddress.text($0) }
  /// How long the steps to open the connection took.
  package var setup: HTTPConnectionInfo.Setup?
  /// What the server has shown; nil without TLS.
  package private(set) var certificates: PeerCertificates?
  private var tls: HTTPConnectionInfo.TLS?
  private var hasServedStream = false

  init(_ channel: any Channel, version: HTTPConnectionInfo.Version) {
    self.channel = channel
    self.version = version
  }

  /// Takes note of the TLS handshake.
  ///
  /// - Parameters:
  ///   - version: Of TLS, for example `TLS 1.3`; nil if it is not known.
  ///   - applicationProtocol: What was negotiated by ALPN.
  package mutating func didSecure(
    _ certificates: PeerCertificates,
    version: String?,
    applicationProtocol: String?
  ) {
    self.certificates = certificates
    self.tls = certificates.info(version: version, applicationProtocol: applicationProtocol)
  }

  /// To be told to the handler of a stream that starts.
  @inline(__always)
  package mutating func infoForNextStream(isEarly: Bool = false) -> HTTPConnectionInfo {
    let isReused = self.hasServedStream
    self.hasServedStream = true
    return HTTPConnectionInfo(
      version: self.version,
      isReused: isReused,
      remoteAddress: self.remoteAddress,
      setup: isReused ? nil : self.setup,
      isEarlyData: isEarly,
      tls: self.tls
    )
  }
}
