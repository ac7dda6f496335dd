internal import Connect

/// What a response's headers allow a cache to do with it.
struct CacheRules {
  private let response: HTTPResponse
  private let configuration: ResponseCache.Configuration
  private let control: CacheControl
  /// When the response was asked for, as far as is known.
  private let requestTime: Duration
  let varyingNames: [String]

  init(_ response: HTTPResponse, configuration: ResponseCache.Configuration, requestTime: Duration) {
    self.response = response
    self.configuration = configuration
    self.control = CacheControl(response.headers)
    self.requestTime = requestTime
    self.varyingNames = Self.varyingNames(of: response.headers)
  }

  /// Whether the response may be shared with other calls at all, at least with those in flight.
  ///
  /// - Parameter isPersonal: Whether the key tells users apart. If not, a response that is private or sets a cookie is only
  ///   for the call that requested it.
  func mayShare(isPersonal: Bool) -> Bool {
    guard !self.control.noStore, !self.varyingNames.contains("*") else { return false }
    return isPersonal || (!self.control.isPrivate && !self.response.headers.contains("set-cookie"))
  }

  /// - Parameter isPersonal: Whether the key tells users apart.
  func mayStore(isPersonal: Bool) -> Bool {
    guard self.mayShare(isPersonal: isPersonal) else { return false }
    // A response that is never fresh is of use only if it can be revalidated.
    return self.lifetime > .zero || self.response.headers.contains("etag")
  }

  func makeEntry(requestHeaders: Headers) -> CacheEntry {
    var response = self.response
    response.message = response.message.compact
    // The request would keep tokens in memory.
    response.request = nil
    let birth = self.requestTime - self.age
    return CacheEntry(
      response: response,
      varyingFields: requestHeaders.fields(named: self.varyingNames),
      varyingNames: self.varyingNames,
      requestTime: self.requestTime,
      birth: birth,
      expiry: birth + self.lifetime,
      staleAllowance: self.staleAllowance
    )
  }

  /// How old the response was when it came.
  var age: Duration {
    self.response.headers.first("age").flatMap(Int64.init).map { Duration.seconds(max(0, $0)).clamped }
      ?? .zero
  }

  private var lifetime: Duration {
    if self.control.noCache { return .zero }
    return min(self.control.maxAge ?? self.configuration.timeToLive, self.configuration.maximumTimeToLive)
      .clamped
  }

  private var staleAllowance: Duration? {
    if self.control.noCache || self.control.mustRevalidate { return nil }
    return min(self.control.staleIfError ?? self.configuration.staleOnError, self.configuration.staleOnError)
  }

  /// Sorted. Leaves out headers that the protocol adds inside of all interceptors: they are equal in all calls of a client.
  private static func varyingNames(of headers: Headers) -> [String] {
    var names = Set<String>()
    for field in headers where field.name == "vary" {
      for name in field.value.split(separator: ",") { names.insert(Substring(name).trimmed.lowercased()) }
    }
    return names.subtracting(["", "accept-encoding", "content-type"]).sorted()
  }
}
