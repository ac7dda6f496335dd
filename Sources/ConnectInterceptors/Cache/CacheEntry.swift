public import Connect
internal import NIOCore

/// A response in a cache.
public struct CacheEntry: Sendable {
  /// A successful response.
  public let response: HTTPResponse
  /// The request's headers that the response varies by, with the values that they had. A request that has others must
  /// not be given this response.
  public let varyingFields: [Headers.Field]
  /// The names of these headers, including headers that the request did not have.
  public let varyingNames: [String]
  /// When it was asked for, as far as is known: on the clock of the cache, counted from when the cache was made.
  let requestTime: Duration
  /// When the response was as old as it is young now: on the clock of the cache, counted from when the cache was made.
  public let birth: Duration
  /// Until when, counted alike, it is fresh.
  public let expiry: Duration
  /// How long after that it may be used if the network fails; nil for never, not even with an expiry yet to come.
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
  /// The fields that have one of some names, ordered by these.
  func fields(named names: [String]) -> [Headers.Field] {
    names.flatMap { name in self.filter { $0.name == name } }
  }
}
