/// The rules of a service config by method. One lookup costs at most three hash lookups.
package struct MethodTable: Sendable {
  private let configs: [MethodConfig.Name: MethodConfig]

  package init(_ methods: [MethodConfig]) {
    var configs: [MethodConfig.Name: MethodConfig] = [:]
    for config in methods {
      // A config that a program has built may have a name twice: the first one counts.
      for name in config.names where configs[name] == nil { configs[name] = config }
    }
    self.configs = configs
  }

  /// The most specific rules for a method: its own, else those of its service, else those for all. Rules are
  /// never merged.
  ///
  /// - Parameter service: With its package, as in `pkg.Service`.
  package func config(service: String, method: String) -> MethodConfig? {
    if self.configs.isEmpty { return nil }
    return self.configs[.init(service: service, method: method)] ?? self.configs[.init(service: service)]
      ?? self.configs[.init()]
  }
}
