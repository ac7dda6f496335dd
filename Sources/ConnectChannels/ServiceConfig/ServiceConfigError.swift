/// What is wrong with a service config, and where.
public struct ServiceConfigError: Swift.Error, Hashable, Sendable {
  /// The place, for example `methodConfig[0].retryPolicy.maxAttempts`; empty for the whole text.
  public var path: String
  /// What is wrong at this place, and what is allowed there.
  public var problem: String

  /// An error at a place of a service config.
  public init(path: String, problem: String) {
    self.path = path
    self.problem = problem
  }
}

extension ServiceConfigError: CustomStringConvertible {
  public var description: String {
    "the service config is invalid\(self.path.isEmpty ? "" : " at \(self.path)"): \(self.problem)"
  }
}
