/// Something that the servers of the tests, or what they need, could not do.
public struct LoopbackServerError: Error, CustomStringConvertible {
  public let description: String

  public init(_ description: String) {
    self.description = description
  }
}
