/// What could not be read in a trace.
public struct Mistakes: Sendable, Hashable, CustomStringConvertible {
  /// How many mistakes are kept with their text.
  static let maximumCount = 10

  /// How many lines, spans or calls could not be used.
  public private(set) var count = 0
  /// The first ten of them, each with its file and line.
  public private(set) var first: [String] = []

  /// - Parameter place: The file and the line, such as `access.log:7`.
  mutating func add(_ problem: String, at place: String) {
    self.count += 1
    if self.first.count < Self.maximumCount { self.first.append("\(place): \(problem)") }
  }

  mutating func add(_ other: Mistakes) {
    self.count += other.count
    self.first += other.first.prefix(Self.maximumCount - self.first.count)
  }

  public var description: String {
    guard self.count > 0 else { return "all could be read" }
    let rest = self.count - self.first.count
    let lines = self.first.map { "  \($0)" } + (rest > 0 ? ["  and \(Plot.count(rest)) more"] : [])
    return (["\(Plot.count(self.count)) could not be used:"] + lines).joined(separator: "\n")
  }
}

/// Why a trace cannot be used, and what was expected.
public struct TraceError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The file's name.
  public var name: String
  /// What is wrong, and what to do.
  public var problem: String

  public var description: String { "\(self.name): \(self.problem)" }
}
