internal import Connect

/// A route that is ready for calls: what does not depend on the method is made once.
struct PreparedRoute: Sendable {
  /// A ``RouteMatch/Path`` that is ready for calls.
  enum Path: Sendable {
    case plain(RouteMatch.Path)
    /// The text is in lower case.
    case lowercased(RouteMatch.Path)
    case regex(RegularExpression)
    /// A pattern that cannot be used. Routes with it are refused before.
    case never
  }

  /// A ``RouteHashPolicy`` that is ready for calls.
  struct HashPolicy: Sendable {
    /// Names are in lower case.
    let kind: RouteHashPolicy.Kind
    let rewrite: Rewrite?
    let isTerminal: Bool
  }

  /// A ``RouteHashPolicy/Rewrite`` that is ready for calls.
  struct Rewrite: Sendable {
    let expression: RegularExpression
    let substitution: String

    init?(_ rewrite: RouteHashPolicy.Rewrite) {
      guard let expression = try? RegularExpression(rewrite.pattern) else { return nil }
      self.expression = expression
      self.substitution = rewrite.substitution
    }

    func apply(to value: String) -> String {
      self.expression.replacing(in: value, with: self.substitution)
    }
  }

  let route: Route
  let path: Path
  let conditions: [HeaderCondition]
  let hashPolicies: [HashPolicy]

  init(_ route: Route) {
    self.route = route
    self.path = Path(route.match.path, isCaseSensitive: route.match.isCaseSensitive)
    self.conditions = route.match.headers.map(HeaderCondition.init)
    self.hashPolicies = route.hashPolicies.map { policy in
      let kind: RouteHashPolicy.Kind =
        if case .header(let name) = policy.kind { .header(name.lowercased()) } else { policy.kind }
      let rewrite = policy.rewrite.flatMap(Rewrite.init)
      return HashPolicy(kind: kind, rewrite: rewrite, isTerminal: policy.isTerminal)
    }
  }
}

extension PreparedRoute.Path {
  fileprivate init(_ path: RouteMatch.Path, isCaseSensitive: Bool) {
    switch path {
    case .regex(let pattern): self = (try? RegularExpression(pattern)).map { .regex($0) } ?? .never
    case .prefix(let text): self = isCaseSensitive ? .plain(path) : .lowercased(.prefix(text.asciiLowercased))
    case .exact(let text): self = isCaseSensitive ? .plain(path) : .lowercased(.exact(text.asciiLowercased))
    }
  }

  func matches(_ path: String) -> Bool {
    switch self {
    case .plain(let rule): rule.matches(path)
    case .lowercased(let rule): rule.matches(path.asciiLowercased)
    case .regex(let expression): expression.matches(path)
    case .never: false
    }
  }
}

extension RouteMatch.Path {
  fileprivate func matches(_ path: String) -> Bool {
    switch self {
    case .prefix(let prefix): path.utf8.starts(with: prefix.utf8)
    case .exact(let exact): path == exact
    case .regex: false
    }
  }
}
