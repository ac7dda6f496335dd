/// What a TLS configuration says, with its files read and looked at: for an engine other than NIOSSL.
package struct TLSMaterial: Sendable {
  /// Nil for the system's trust roots, or if nothing is verified.
  package var anchors: TrustAnchors?
  package var verifiesServers: Bool
  /// Whether OpenSSL's additions say what a certificate is trusted for.
  package var hasTrustSettings: Bool
  /// In PEM.
  package var clientCertificate: (chain: [UInt8], privateKey: [UInt8])?
  /// What gets the sessions' secrets.
  package var keyLog: KeyLogFile?
}
