/// One alternative of a response's `alt-svc` field (RFC 7838, section 3).
package struct AlternativeService: Sendable, Hashable {
  /// The protocol's name in TLS (ALPN), such as `h3`, with its percent-encoding decoded.
  package var protocolName: String
  /// Nil for the host of the origin. IPv6 without brackets.
  package var host: String?
  /// 1 to 65,535.
  package var port: Int
  /// For how long it may be used, from the response on. 24 hours where the field does not say.
  package var maximumAge: Duration = .seconds(86_400)

  package init(protocolName: String, host: String? = nil, port: Int) {
    self.protocolName = protocolName
    self.host = host
    self.port = port
  }
}

/// What the `alt-svc` fields of one response say.
package enum AltSvcField: Sendable, Hashable {
  /// All alternatives of the origin are invalid.
  case clear
  /// These take the place of all earlier ones; the best one first.
  case alternatives([AlternativeService])
}
