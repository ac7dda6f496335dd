/// The rules of a service config by method, each made once. One lookup costs at most three hash lookups.
package struct MethodTable<Rules: Sendable>: Sendable {
  private let rules: [MethodConfig.Name: Rules]

  /// - Parameter make: Makes the rules of a config.
  package init(_ methods: [MethodConfig], _ make: (MethodConfig) -> Rules) {
    var rules: [MethodConfig.Name: Rules] = [:]
    for config in methods {
      let made = make(config)
      // A config that a program has built may have a name twice: the first one counts.
      for name in config.names where rules[name] == nil { rules[name] = made }
    }
    self.rules = rules
  }

  /// The most specific rules for a method: its own, else those of its service, else those for all. Rules are
  /// never merged.
  ///
  /// - Parameter service: With its package, as in `pkg.Service`.
  package func rules(service: String, method: String) -> Rules? {
    if self.rules.isEmpty { return nil }
    return self.rules[.init(service: service, method: method)] ?? self.rules[.init(service: service)]
      ?? self.rules[.init()]
  }
}
