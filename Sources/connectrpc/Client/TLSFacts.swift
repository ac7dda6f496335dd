import Connect
import ConnectNIO
import Foundation

/// What `-v` prints of the TLS of a connection, a line each.
struct TLSFacts {
  let lines: [String]

  init(_ tls: HTTPConnectionInfo.TLS) {
    let alpn = tls.applicationProtocol.map { "ALPN \($0)" } ?? "no ALPN"
    self.lines =
      ["\(tls.version ?? "TLS"), \(alpn)"]
      + tls.certificates.enumerated().map { index, der in
        Self.text(of: der, role: index == 0 ? "certificate" : "issuer")
      }
  }

  /// The server chose everything in it. What is printed has no control characters.
  private static func text(of der: [UInt8], role: String) -> String {
    guard let certificate = Certificate(der: der) else { return "\(role) that cannot be read" }
    let fields = certificate.fields
    let issuer = fields.isSelfIssued ? "self-signed" : "issued by '\(fields.issuer)'"
    let end = Date(timeIntervalSince1970: TimeInterval(certificate.notAfter)).formatted(.iso8601)
    let names = role == "certificate" ? fields.names.text.map { ", for \($0)" } ?? ", for no name" : ""
    return "\(role) '\(fields.subject)', \(issuer), valid until \(end)\(names)"
  }
}
