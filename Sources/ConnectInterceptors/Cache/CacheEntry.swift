public import Connect
internal import NIOCore

/// A response in a cache.
public struct CacheEntry: Sendable {
  /// A successful response.
  public let response: HTTPResponse
  /// The request's headers that the response varies by, with their values. A request with other values must not get this
  /// response.
  public let varyingFields: [Headers.Field]
  /// The names of these headers, including headers that the request did not have.
  public let varyingNames: [String]
  /// When the response was requested, as far as is known: on the clock of the cache, counted from when the cache was made.
  let requestTime: Duration
  /// When the response's age was zero: on the clock of the cache, counted from when the cache was made.
  public let birth: Duration
  /// Until when the response is fresh, on the same clock.
  public let expiry: Duration
  /// How long after ``expiry`` the response may be used if the network fails. Nil for never, not even before the expiry.
  public let staleAllowance: Duration?

  /// What the server calls this version of the response.
  public var etag: String? { self.response.headers.first("etag") }

  /// About how many bytes of memory it takes.
  public var byteCount: Int {
    let headers = [self.response.headers, self.response.trailers, self.response.httpHeaders]
    return headers.joined().reduce(self.response.message.readableBytes + 300) { $0 + $1.byteCount }
  }

  /// Whether a request has the headers that the response was made for.
  func matches(_ headers: Headers) -> Bool {
    self.varyingNames.isEmpty || headers.fields(named: self.varyingNames) == self.varyingFields
  }
}

extension Headers {
  /// The fields with these names, in the order of the names.
  func fields(named names: [String]) -> [Headers.Field] {
    names.flatMap { name in self.filter { $0.name == name } }
  }
}
