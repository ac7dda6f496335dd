/// What a certificate says that it is for: its subject alternative names, as far as they are of hosts and services (RFC 5280,
/// section 4.2.1.6). Whoever made the certificate chose them: they may be anything.
package struct PresentedIdentifiers: Hashable, Sendable {
  /// The names of the type dNSName, which should be ASCII, and may begin with `*.`.
  package var dnsNames: [[UInt8]]
  /// The names of the type iPAddress: 4 or 16 bytes in network order.
  package var addresses: [[UInt8]]

  /// The names of the type uniformResourceIdentifier.
  package var uris: [[UInt8]]

  package init(dnsNames: [[UInt8]] = [], addresses: [[UInt8]] = [], uris: [[UInt8]] = []) {
    self.dnsNames = dnsNames
    self.addresses = addresses
    self.uris = uris
  }
}
