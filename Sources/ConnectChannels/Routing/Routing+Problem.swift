extension Routing {
  /// What is wrong with the routes, and what to do; nil if they can be used.
  var problem: String? {
    for (index, route) in self.routes.enumerated() {
      if let problem = route.problem { return "route \(index + 1) \(problem)" }
    }
    return nil
  }

  /// The names of the clusters that routes lead to, each once.
  var reachableClusters: Set<String> {
    var names: Set<String> = []
    for route in self.routes {
      for cluster in route.clusters { names.insert(cluster.name) }
    }
    return names
  }
}

extension Route {
  fileprivate var problem: String? {
    if self.refusal == nil {
      if self.clusters.isEmpty { return "has no cluster; name at least one" }
      if self.clusters.allSatisfy({ $0.weight == 0 }) {
        return "has no cluster with a weight; give one of its clusters a weight above 0"
      }
    }
    if let fraction = self.match.fraction, !(0...1).contains(fraction) {
      return "has the fraction \(fraction); it has to be from 0 to 1"
    }
    for pattern in self.patterns {
      do throws(RegularExpression.PatternError) {
        _ = try RegularExpression(pattern)
      } catch {
        return "has a pattern that cannot be used: \(error.reason); correct it"
      }
    }
    return nil
  }

  private var patterns: [String] {
    var patterns: [String] = []
    if case .regex(let pattern) = self.match.path { patterns.append(pattern) }
    for header in self.match.headers {
      if case .regex(let pattern) = header.rule { patterns.append(pattern) }
    }
    return patterns + self.hashPolicies.compactMap { $0.rewrite?.pattern }
  }
}
