/// What a TLS configuration says, with its files read and looked at, for the engines of TCP and of QUIC.
package struct TLSMaterial: Sendable {
  /// Which servers are trusted.
  package var trust: ServerTrust
  /// In PEM.
  package var clientCertificate: (chain: [UInt8], privateKey: [UInt8])?
  /// What gets the sessions' secrets.
  package var keyLog: KeyLogFile?
}
