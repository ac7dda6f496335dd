/// The headers of a request, for policies that choose by them.
///
/// A type of at most three words costs no allocation in a ``PickContext``.
public protocol PickHeaders {
  /// The value of a header, several values with commas between them; nil if there is none.
  ///
  /// - Parameter name: In lower case.
  func value(of name: String) -> String?
}

/// The call that a picker chooses an endpoint for.
public struct PickContext: ~Copyable {
  /// The path of the method, such as `/package.Service/Method`.
  public let path: String
  /// The headers of the request. Several values of a name are joined with commas.
  public let headers: any PickHeaders
  /// A random number that belongs to the call: the same when the call is picked again after it has waited, so that it
  /// meets the same endpoint. Another one for each attempt of a call that is retried.
  public let seed: UInt64
  /// What the call should be hashed by in place of a header.
  public let hash: UInt64?

  /// A call, for tests of pickers.
  public init(path: String, headers: any PickHeaders, seed: UInt64, hash: UInt64? = nil) {
    self.path = path
    self.headers = headers
    self.seed = seed
    self.hash = hash
  }

  /// Random numbers of the call, which begin with the same ones at each use.
  public var generator: SplitMix64 { SplitMix64(seed: self.seed) }
}
