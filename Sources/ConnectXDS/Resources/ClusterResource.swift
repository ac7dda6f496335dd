internal import ConnectChannels

/// A set of servers, or of other clusters.
struct ClusterResource: Sendable, Hashable {
  enum Kind: Sendable, Hashable {
    /// The endpoints have a resource of this name.
    case endpoints(String)
    case logicalDNS(host: String, port: Int)
    /// Other clusters in order of preference (gRFC A37).
    case aggregate([String])
  }

  /// How calls are spread within a priority.
  enum Policy: Sendable, Hashable {
    /// First over localities by their weights, then within the locality by this policy (gRFC A52: `WrrLocality`).
    case byLocality(BalancingPolicy)
    /// Over all endpoints of the priority, whatever their locality.
    case overall(BalancingPolicy)
  }

  var kind: Kind
  var policy: Policy
  /// How many calls may be in flight (gRFC A32).
  var maximumCalls: UInt32 = 1024
  var outlierDetection: OutlierDetection?
  var security: ClusterSecurity?
  /// Whether loads are reported to the server that the cluster came from.
  var reportsLoads = false
}

/// TLS of a cluster (gRFC A29). Names of certificate providers are those of the bootstrap.
struct ClusterSecurity: Sendable, Hashable {
  /// The provider of certificates of authorities; nil for those of the system.
  var roots: String?
  /// The provider of this client's certificate; nil for none.
  var identity: String?
  /// Which names of the server's certificate are accepted; empty for any.
  var acceptedNames: [NameMatcher] = []

  /// A rule for the alternative names of a certificate.
  struct NameMatcher: Sendable, Hashable {
    enum Rule: Sendable, Hashable {
      case exact(String)
      case prefix(String)
      case suffix(String)
      case contains(String)
      case regex(String)
    }

    var rule: Rule
    var ignoresCase = false
  }
}

extension ClusterSecurity {
  /// All settings as a text: other settings have another text.
  var text: String {
    // An array quotes its texts.
    let names = self.acceptedNames.map { "\($0.ignoresCase ? "any case " : "")\($0.rule.text)" }
    return "TLS, roots: \(self.roots.quoted), identity: \(self.identity.quoted), names: \(names)"
  }
}

extension ClusterSecurity.NameMatcher.Rule {
  fileprivate var text: String {
    switch self {
    case .exact(let text): "exact \(text)"
    case .prefix(let text): "prefix \(text)"
    case .suffix(let text): "suffix \(text)"
    case .contains(let text): "contains \(text)"
    case .regex(let text): "regex \(text)"
    }
  }
}

extension String? {
  /// With quotation marks, so that no name is like none.
  fileprivate var quoted: String { self.map { $0.debugDescription } ?? "none" }
}
