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
  public var path: String { ASCII.withoutQuery(self.target) }
  /// The path, and the query that a GET has. It is looked for only where a policy asks.
  private let target: String
  /// The headers of the request. Several values of a name are joined with commas.
  public let headers: any PickHeaders
  /// A random number that belongs to the call. It stays the same when the call is picked again after a wait, so that
  /// the call meets the same endpoint. Each attempt of a retried call has a different number.
  public let seed: UInt64
  /// The hash of the call, to use in place of a header.
  public let hash: UInt64?

  /// A call, for tests of pickers.
  public init(path: String, headers: any PickHeaders, seed: UInt64, hash: UInt64? = nil) {
    self.target = path
    self.headers = headers
    self.seed = seed
    self.hash = hash
  }

  /// A generator of the call's random numbers. Each use starts with the same numbers.
  public var generator: SeededRandom { SeededRandom(seed: self.seed) }
}
