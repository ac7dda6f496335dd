/// A failure of a test server, or of something that the server needs.
public struct LoopbackServerError: Error, CustomStringConvertible {
  public let description: String

  public init(_ description: String) {
    self.description = description
  }
}
