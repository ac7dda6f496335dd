/// Which servers a TLS configuration trusts.
package struct ServerTrust: Sendable {
  /// Verifies chains; nil if any certificate is accepted.
  package var verifier: CertificateVerifier?
  /// What counts of the names in a certificate. Without effect if any certificate is accepted.
  package var names = NameRule.connection
  /// The SPIFFE trust domain that the trust roots are of; nil for none. They vouch for no other names than its own.
  package var trustDomain: String?
  /// The program's own part, which comes last.
  package var decision: ServerVerifier?

  package init(_ verifier: CertificateVerifier?) {
    self.verifier = verifier
  }
}
