internal import NIOSSL

extension TLSVersion {
  /// For example `TLS 1.3`.
  var name: String {
    switch self {
    case .tlsv1: "TLS 1.0"
    case .tlsv11: "TLS 1.1"
    case .tlsv12: "TLS 1.2"
    case .tlsv13: "TLS 1.3"
    }
  }
}
