/// Which calls a route is for: all conditions have to hold.
public struct RouteMatch: Sendable, Hashable {
  /// Which paths match. A path is `/package.Service/Method`.
  public enum Path: Sendable, Hashable {
    /// Paths with this beginning; an empty one for all paths.
    case prefix(String)
    /// This path.
    case exact(String)
    /// Paths that match a regular expression in the style of RE2 as a whole.
    case regex(String)
  }

  /// Which paths match; all by default.
  public var path: Path
  /// Whether upper and lower case differ in a prefix or an exact path; true by default.
  public var isCaseSensitive: Bool
  /// What the headers that the caller sends have to be, each of them.
  public var headers: [HeaderMatch]
  /// The part of the matching calls that the route takes, from 0 to 1; nil, the default, for all of them.
  public var fraction: Double?

  /// Conditions.
  public init(
    path: Path = .prefix(""),
    isCaseSensitive: Bool = true,
    headers: [HeaderMatch] = [],
    fraction: Double? = nil
  ) {
    self.path = path
    self.isCaseSensitive = isCaseSensitive
    self.headers = headers
    self.fraction = fraction
  }

  /// All calls.
  public static var all: RouteMatch { RouteMatch() }
}

/// A condition on a header that the caller sends.
public struct HeaderMatch: Sendable, Hashable {
  /// What the header's value has to be.
  public enum Rule: Sendable, Hashable {
    /// This value.
    case exact(String)
    /// A value with this beginning.
    case prefix(String)
    /// A value with this end.
    case suffix(String)
    /// A value with this in it.
    case contains(String)
    /// A decimal integer in the range.
    case range(Range<Int64>)
    /// A value that matches a regular expression in the style of RE2 as a whole.
    case regex(String)
    /// Any value.
    case present
  }

  /// The header's name, in any case.
  public var name: String
  /// What its value has to be. Several values are joined with commas. A header that is not there matches no rule.
  public var rule: Rule
  /// Whether calls match whose value does not meet the rule. A call without the header matches only if the rule is
  /// ``Rule/present`` (as in gRPC).
  public var isInverted: Bool
  /// Whether the rule's text is compared without regard to the case of ASCII letters; false by default. Not for regular
  /// expressions.
  public var ignoresCase: Bool

  /// A condition.
  public init(_ name: String, _ rule: Rule, isInverted: Bool = false, ignoresCase: Bool = false) {
    self.name = name
    self.rule = rule
    self.isInverted = isInverted
    self.ignoresCase = ignoresCase
  }
}

/// What a call of a route is hashed by (gRFC A42).
///
/// The hashes of a route's policies are combined: calls have the same hash if all policies find the same.
public struct RouteHashPolicy: Sendable, Hashable {
  /// What is hashed.
  public enum Kind: Sendable, Hashable {
    /// The value of a header. Calls without it have no hash by this policy.
    case header(String)
    /// The client: all its calls have the same hash, while its channel to the origin lives.
    case client
  }

  /// Changes a header's value before it is hashed, so that values that differ in a part can have the same hash.
  public struct Rewrite: Sendable, Hashable {
    /// A regular expression in the style of RE2. Each match in the value is replaced.
    public var pattern: String
    /// In place of each match: `\1` is what the first group has matched, `\0` the whole match.
    public var substitution: String

    /// A rewrite.
    public init(pattern: String, substitution: String) {
      self.pattern = pattern
      self.substitution = substitution
    }
  }

  /// What is hashed.
  public var kind: Kind
  /// Changes the header's value before it is hashed; nil, the default, for the value as it is.
  public var rewrite: Rewrite?
  /// Whether the policies behind this one are left out for calls that have a hash by now; false by default.
  public var isTerminal: Bool

  /// A policy.
  public init(_ kind: Kind, rewrite: Rewrite? = nil, isTerminal: Bool = false) {
    self.kind = kind
    self.rewrite = rewrite
    self.isTerminal = isTerminal
  }

  /// The value of a header, in any case of its name.
  public static func header(
    _ name: String,
    rewrite: Rewrite? = nil,
    isTerminal: Bool = false
  ) -> RouteHashPolicy {
    RouteHashPolicy(.header(name), rewrite: rewrite, isTerminal: isTerminal)
  }

  /// The client.
  public static var client: RouteHashPolicy { RouteHashPolicy(.client) }
}
