internal import CGnuTLS
internal import CNgtcp2

/// A C library could not make what a connection needs.
struct HTTP3SetupError: Error, CustomStringConvertible {
  let reason: String

  init(reason: String) { self.reason = reason }

  init(quic code: Int32) { self.reason = "QUIC: \(String(cString: ngtcp2_strerror(code)))" }

  init(gnutls code: Int32) { self.reason = "GnuTLS: \(String(cString: gnutls_strerror(code)))" }

  var description: String { self.reason }
}
