/// What is wrong with a cassette: its file, its configuration, or a call that cannot be recorded.
public struct CassetteError: Error, Hashable, Sendable {
  /// The file, and the place in it; or the call. For example `users.json: exchanges[2].parts[0].send`.
  public var place: String
  /// What is wrong there.
  public var problem: String

  /// An error at a place.
  public init(place: String, problem: String) {
    self.place = place
    self.problem = problem
  }
}

extension CassetteError: CustomStringConvertible {
  public var description: String { self.place.isEmpty ? self.problem : "\(self.place): \(self.problem)" }
}
