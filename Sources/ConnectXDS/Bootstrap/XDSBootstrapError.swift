/// Why a bootstrap cannot be used: all mistakes that were found.
public struct XDSBootstrapError: Swift.Error, Sendable, Hashable {
  /// A mistake.
  public struct Problem: Sendable, Hashable {
    /// The place, for example `xds_servers[0].channel_creds`; empty for the text as a whole.
    public var path: String
    /// What is wrong at this place, and what is expected there.
    public var problem: String

    /// A mistake at a place.
    public init(path: String, problem: String) {
      self.path = path
      self.problem = problem
    }
  }

  /// The file or the environment variable that the text came from.
  public var source: String
  /// At least one.
  public var problems: [Problem]

  /// An error with all mistakes of a text.
  public init(source: String, problems: [Problem]) {
    self.source = source
    self.problems = problems
  }
}

extension XDSBootstrapError: CustomStringConvertible {
  /// The source, and each mistake with its place.
  public var description: String {
    let problems = self.problems.map { $0.path.isEmpty ? $0.problem : "\($0.path): \($0.problem)" }
    return "the xDS bootstrap of \(self.source) cannot be used: \(problems.joined(separator: "; "))"
  }
}
