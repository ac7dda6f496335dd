internal import NIOSSL

/// What connections to servers need of TLS, made of a configuration and its files.
package final class TLSContext: Sendable {
  /// What the context was made of.
  package let material: TLSMaterial
  /// Verifies nothing by itself: it trusts no certificate, and leaves the verification to a callback.
  let context: NIOSSLContext

  init(_ context: NIOSSLContext, material: TLSMaterial) {
    self.context = context
    self.material = material
  }
}
