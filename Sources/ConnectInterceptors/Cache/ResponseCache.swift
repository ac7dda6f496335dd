public import Connect
public import NIOCore

/// Responses of unary calls without side effects, to be given again to identical calls.
///
/// Made once and shared by the calls of one client, or of several. Two interceptors use it: ``CacheReadInterceptor``
/// answers calls, ``CacheWriteInterceptor`` stores what the server answers. Either may be replaced by one of the user's
/// own, around ``entry(for:_:)`` and ``store(_:for:)``.
///
/// ```swift
/// let cache = ResponseCache()
/// let config = ProtocolClientConfig(
///   host: "https://api.example.com",
///   interceptors: [{ _ in CacheReadInterceptor(cache) }, { _ in CacheWriteInterceptor(cache) }],
///   unaryGET: .enabledForLimitedPayloadSizes(maxBytes: 8192)
/// )
/// ```
///
/// What servers say in `cache-control`, `age`, `etag` and `vary` counts, with each protocol; only a GET request can ask
/// whether a response has changed (`if-none-match`). A response that is `private` is stored if the key tells users apart:
/// by a ``CachePartition``, or by the header `authorization` or `cookie`.
///
/// Requests are compared by their bytes, which are the same each time for equal messages, also those with maps, as far as
/// the codec knows how; else a response may not be found again, which costs a call and nothing more.
public final class ResponseCache: Sendable {
  public let configuration: Configuration
  private let storage: any CacheStorage
  private let time: ElapsedTime
  let flights = Flights()
  let removals = CacheRemovals()

  /// - Parameter clock: The time that responses age by.
  public init(
    configuration: Configuration = .defaults,
    storage: any CacheStorage = MemoryCacheStorage(),
    clock: any Clock<Duration> = ContinuousClock()
  ) {
    self.configuration = configuration
    self.storage = storage
    self.time = ElapsedTime(on: clock)
  }

  var now: Duration { self.time.now }

  // MARK: Keys

  private static let credentialHeaders: Set<String> = ["authorization", "cookie"]

  /// What the response to a request is found by.
  public func key(for request: HTTPRequest<ByteBuffer>) -> CacheKey {
    let partition = request.context[CachePartition.self]
    let requestIDHeader = request.context[RequestIDHeader.self]
    var fields = request.headers.filter { field in
      self.configuration.keyHeaders.contains(field.name) && field.name != requestIDHeader
        && (partition == nil || !Self.credentialHeaders.contains(field.name))
    }
    if fields.count > 1 {
      // The order of different names means nothing; that of one name's values does, and sorting is not stable.
      fields = fields.enumerated().sorted { ($0.element.name, $0.offset) < ($1.element.name, $1.offset) }
        .map(\.element)
    }
    return CacheKey(request, headers: fields, partition: partition)
  }

  // MARK: Reading

  /// Looks up the response to a request, fresh or not.
  ///
  /// - Parameter completion: Called once, at once or later, from any thread.
  public func entry(
    for request: HTTPRequest<ByteBuffer>,
    _ completion: @escaping @Sendable (CacheEntry?) -> Void
  ) {
    self.entry(for: self.key(for: request), headers: request.headers, completion)
  }

  func entry(
    for key: CacheKey,
    headers: Headers,
    _ completion: @escaping @Sendable (CacheEntry?) -> Void
  ) {
    self.storage.entry(for: key) { [storage] entry in
      guard let entry, !entry.matches(headers) else { return completion(entry) }
      storage.entry(for: key.variant(by: entry.varyingNames, headers)) { variant in
        completion(variant.flatMap { $0.matches(headers) ? $0 : nil })
      }
    }
  }

  /// How long an entry is still fresh; less than zero once it has expired.
  public func remainingTime(of entry: CacheEntry) -> Duration {
    entry.expiry - self.now
  }

  // MARK: Writing

  /// Stores what a server has answered to a request, as far as that is allowed. A 304 renews the entry that it is about;
  /// errors are not stored.
  ///
  /// Nor is what a request has brought that was sent before the cache was told to forget the response, or that has become
  /// another user's since it passed the cache. That is known of requests that the cache's interceptors have seen, with
  /// the context that they were given there.
  public func store(_ response: HTTPResponse, for request: HTTPRequest<ByteBuffer>) {
    guard response.error == nil else { return }
    let key = self.key(for: request)
    let mark = request.context[CacheMark.self]?.innermost(of: self)
    guard mark?.mayShare != false else { return }
    let source = Source(
      headers: request.headers,
      time: mark?.time ?? self.now,
      removalCount: mark.flatMap { $0.key == key ? $0.removalCount : nil } ?? self.removals.count(for: key)
    )
    guard response.httpStatus == 304 else {
      self.store(response, for: key, from: source)
      return
    }
    self.entry(for: key, headers: request.headers) { entry in
      guard let entry, let etag = entry.etag, request.headers["if-none-match"] == [etag] else { return }
      self.store(self.renewed(entry, by: response), for: key, from: source)
    }
  }

  /// What a response has come from.
  private struct Source {
    /// The request's.
    var headers: Headers
    /// When the request was sent, as far as is known.
    var time: Duration
    /// What ``removals`` said then.
    var removalCount: UInt64
  }

  private func store(_ response: HTTPResponse, for key: CacheKey, from source: Source) {
    // A response may have been made as early as its request was sent: RFC 9111, section 4.2.3.
    let rules = CacheRules(response, configuration: self.configuration, requestTime: source.time)
    guard rules.mayStore(isPersonal: self.isPersonal(key)) else {
      self.storage.remove(key)
      return
    }
    let entry = rules.makeEntry(requestHeaders: source.headers)
    // The first variant has the key itself, so that one look tells which headers there are to compare.
    self.storage.entry(for: key) { [storage] first in
      let isOther =
        first.map { !$0.matches(source.headers) && $0.varyingNames == entry.varyingNames } ?? false
      guard isOther else { return self.keep(entry, for: key, inPlaceOf: first, key, source) }
      let variant = key.variant(by: entry.varyingNames, source.headers)
      storage.entry(for: variant) { self.keep(entry, for: variant, inPlaceOf: $0, key, source) }
    }
  }

  /// - Parameters:
  ///   - old: What there is. It stays if it was asked for later, since a response may take long.
  ///   - key: The key of all variants.
  private func keep(
    _ entry: CacheEntry,
    for variant: CacheKey,
    inPlaceOf old: CacheEntry?,
    _ key: CacheKey,
    _ source: Source
  ) {
    if let old, old.requestTime > entry.requestTime { return }
    guard self.removals.count(for: key) == source.removalCount else { return }
    let compact = variant.compact
    self.storage.store(entry, for: compact)
    // It may have been removed in between.
    if self.removals.count(for: key) != source.removalCount { self.storage.remove(compact) }
  }

  private func isPersonal(_ key: CacheKey) -> Bool {
    key.partition != nil || key.headers.contains { Self.credentialHeaders.contains($0.name) }
  }

  /// Forgets the response to a request, for example since it is known to have changed. Calls under way neither store nor
  /// share with later ones what they bring.
  public func remove(for request: HTTPRequest<ByteBuffer>) {
    self.remove(self.key(for: request), headers: request.headers)
  }

  func remove(_ key: CacheKey, headers: Headers) {
    self.removals.add(key)
    self.storage.entry(for: key) { [storage] entry in
      guard let entry else { return }
      storage.remove(entry.matches(headers) ? key : key.variant(by: entry.varyingNames, headers))
    }
  }

  /// Forgets everything, for example when a user logs out; what calls under way bring, too.
  public func removeAll() {
    self.removals.addAll()
    self.storage.removeAll()
  }

  // MARK: Responses

  /// The response of an entry for another call.
  func response(of entry: CacheEntry, _ status: CacheStatus) -> HTTPResponse {
    var response = entry.response
    response.headers["age"] = ["\(max(.zero, self.now - entry.birth).components.seconds)"]
    status.mark(&response.headers)
    return response
  }

  /// The response of an entry with what a 304 says anew. <https://www.rfc-editor.org/rfc/rfc9111#section-4.3.4>
  func renewed(_ entry: CacheEntry, by response: HTTPResponse) -> HTTPResponse {
    var renewed = entry.response
    // A 304 is as old as it says, or new.
    renewed.headers.remove(name: "age")
    for name in Set(response.headers.map(\.name)) where !name.hasPrefix("content-") {
      renewed.headers[name] = response.headers[name]
    }
    renewed.httpHeaders = renewed.headers
    return renewed
  }
}
