extension RouteConfigurationResource {
  /// The virtual host for a host; nil if none is for it.
  ///
  /// An exact domain counts before a suffix, a suffix before a prefix, and a prefix before `*`. Of domains of one kind, the longest
  /// counts, and of the same length the first. Upper and lower case do not differ (gRFC A27).
  func virtualHost(for host: String) -> VirtualHost? {
    let host = Array(host.lowercased().utf8)
    var best: (rank: DomainRank, index: Int)?
    for (index, virtualHost) in self.virtualHosts.enumerated() {
      for domain in virtualHost.domains {
        guard let rank = DomainRank(of: domain, for: host) else { continue }
        if let best, best.rank >= rank { continue }
        best = (rank, index)
      }
    }
    return best.map { self.virtualHosts[$0.index] }
  }
}

/// How well a domain fits a host.
private struct DomainRank: Comparable {
  enum Kind: Int {
    case any, prefix, suffix, exact
  }

  var kind: Kind
  var length: Int

  /// Nil if the domain does not fit.
  init?(of domain: String, for host: [UInt8]) {
    let domain = Array(domain.lowercased().utf8)
    let star = UInt8(ascii: "*")
    self.length = domain.count
    if domain == [star] {
      self.kind = .any
    } else if domain.first == star {
      // The star stands for one byte at least.
      guard host.count >= domain.count, host.suffix(domain.count - 1) == domain.dropFirst() else {
        return nil
      }
      self.kind = .suffix
    } else if domain.last == star {
      guard host.count >= domain.count, host.prefix(domain.count - 1) == domain.dropLast() else { return nil }
      self.kind = .prefix
    } else {
      guard host == domain else { return nil }
      self.kind = .exact
    }
  }

  static func < (a: DomainRank, b: DomainRank) -> Bool {
    (a.kind.rawValue, a.length) < (b.kind.rawValue, b.length)
  }
}
