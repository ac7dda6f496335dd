/// Something is not as a test expects it. Its description says what was expected and what was found.
///
/// The helpers of this module throw it, so that they read the same in XCTest and in Swift Testing. Both report an error
/// that a test throws.
public struct ExpectationFailure: Error, Sendable, CustomStringConvertible {
  public let description: String

  /// A failure with this description.
  public init(_ description: String) {
    self.description = description
  }
}
