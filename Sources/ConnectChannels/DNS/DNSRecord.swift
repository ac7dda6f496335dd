/// The type of a DNS record or question.
package struct DNSRecordType: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  package var rawValue: UInt16

  package init(rawValue: UInt16) {
    self.rawValue = rawValue
  }

  package static let a = DNSRecordType(rawValue: 1)
  package static let cname = DNSRecordType(rawValue: 5)
  package static let soa = DNSRecordType(rawValue: 6)
  package static let txt = DNSRecordType(rawValue: 16)
  package static let aaaa = DNSRecordType(rawValue: 28)
  package static let srv = DNSRecordType(rawValue: 33)
  /// Of service bindings for HTTP (RFC 9460).
  package static let https = DNSRecordType(rawValue: 65)
  /// EDNS (RFC 6891).
  static let opt = DNSRecordType(rawValue: 41)

  package var description: String {
    switch self {
    case .a: "A"
    case .cname: "CNAME"
    case .soa: "SOA"
    case .txt: "TXT"
    case .aaaa: "AAAA"
    case .srv: "SRV"
    case .https: "HTTPS"
    case .opt: "OPT"
    default: "TYPE\(self.rawValue)"
    }
  }
}

/// The outcome that a server reports, with the upper bits from EDNS (RFC 6895, section 2.3).
package struct DNSResponseCode: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  package var rawValue: UInt16

  package init(rawValue: UInt16) {
    self.rawValue = rawValue
  }

  package static let noError = DNSResponseCode(rawValue: 0)
  package static let formatError = DNSResponseCode(rawValue: 1)
  package static let serverFailure = DNSResponseCode(rawValue: 2)
  package static let noSuchName = DNSResponseCode(rawValue: 3)
  package static let notImplemented = DNSResponseCode(rawValue: 4)
  package static let refused = DNSResponseCode(rawValue: 5)

  package var description: String {
    switch self {
    case .noError: "NOERROR"
    case .formatError: "FORMERR"
    case .serverFailure: "SERVFAIL"
    case .noSuchName: "NXDOMAIN"
    case .notImplemented: "NOTIMP"
    case .refused: "REFUSED"
    default: "response code \(self.rawValue)"
    }
  }
}

/// One record of a DNS message, of class IN.
package struct DNSRecord: Hashable, Sendable {
  package enum Data: Hashable, Sendable {
    case address(IPAddress)
    case alias(DNSName)
    case service(Service)
    /// The strings of a TXT record. One value is often split over several of them.
    case text([[UInt8]])
    case binding(ServiceBinding)
    /// The field MINIMUM of an SOA record, in seconds: it bounds how long an absence is valid (RFC 2308).
    case authority(minimum: UInt32)
    /// A type or class that nothing here reads.
    case other
  }

  /// The content of an SRV record (RFC 2782).
  package struct Service: Hashable, Sendable {
    /// Clients try the lowest first.
    package var priority: UInt16
    /// The share among records of the same priority.
    package var weight: UInt16
    package var port: UInt16
    /// The root if the service is decidedly not available.
    package var target: DNSName
  }

  package var name: DNSName
  package var type: DNSRecordType
  /// For how long the record is valid, in seconds.
  package var timeToLive: UInt32
  package var data: Data
}
