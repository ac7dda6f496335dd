public import Connect
public import NIOCore

/// Responses of unary calls without side effects, to be given again to identical calls.
///
/// Made once and shared by the calls of one client, or of several. Two interceptors use it: ``CacheReadInterceptor``
/// answers calls, ``CacheWriteInterceptor`` stores what the server answers. Either may be replaced by one of the user's
/// own, around ``entry(for:_:)`` and ``store(_:for:seenAs:)``, whose hooks have to be `HookPlacement.innermost`, too.
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
/// whether a response has changed (`if-none-match`). A response that is `private`, or sets a cookie, is stored and shared
/// if the key tells users apart: by a ``CachePartition``, by the header `authorization` or `cookie`, or by a client
/// certificate.
///
/// No user gets what was made for another, whatever the order of the interceptors:
///
/// - The cache's interceptors stand inside of all byte hooks but those that are `HookPlacement.userIndependent`.
///   So the key has whatever header any interceptor of the client, the method, or the call has added, and whoever is not
///   let pass by an interceptor gets nothing from the cache.
/// - A response is stored, and shared with calls under way, only if the request went to the network with the same key
///   (`HTTPResponse.request`). A response that an interceptor inside has made is not.
/// - A request passes the cache by if a header says who the user is (`authorization`, `cookie`, `proxy-authorization`, those
///   in ``SensitiveHeaders``) and `keyHeaders` leaves it out of the key, or if it has trailers.
/// - Clients whose transport authenticates them, such as with a TLS client certificate, have keys of their own.
///
/// Who wants users to have each other's responses says so: with a ``CachePartition``, or with
/// ``Configuration/sharesResponsesBetweenUsers``.
///
/// Responses of streams are not stored. Only whole responses may be given again, so all messages of a stream, of which
/// there is no bound, would have to be kept until its end; their times, which are often what a stream is about, would be
/// lost; and a stream never goes as GET, so a server could not be asked whether it has changed. Who has a stream that is
/// short and always the same gives it a unary method.
///
/// Requests are compared by their bytes, which are the same each time for equal messages, also those with maps, as far as
/// the codec knows how; else a response may not be found again, which costs a call and nothing more.
public final class ResponseCache: Sendable {
  /// What the cache stores, for how long, and when it answers. It never changes.
  public let configuration: Configuration
  private let storage: any CacheStorage
  private let time: ElapsedTime
  let flights = Flights()
  let removals = CacheRemovals()

  /// A cache with an empty storage in memory, unless another storage is given.
  ///
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

  /// What the response to a request is found by.
  public func key(for request: HTTPRequest<ByteBuffer>) -> CacheKey {
    CacheKey(
      request,
      headers: self.keyFields(of: request),
      partition: request.context[CachePartition.self],
      clientIdentity: self.clientIdentity(of: request)
    )
  }

  private func keyFields<Message>(of request: HTTPRequest<Message>) -> [Headers.Field] {
    let hasPartition = request.context[CachePartition.self] != nil
    let requestIDHeader = request.context[RequestIDHeader.self]
    let isShared = self.configuration.sharesResponsesBetweenUsers
    let userHeaders = UserHeaders(of: request)
    let fields = request.headers.filter { field in
      self.configuration.keyHeaders.contains(field.name) && field.name != requestIDHeader
        && !(hasPartition && UserHeaders.partitioned.contains(field.name))
        && !(isShared && userHeaders.contains(field.name))
    }
    guard fields.count > 1 else { return fields }
    // The order of different names means nothing; that of one name's values does, and sorting is not stable.
    return fields.enumerated().sorted { ($0.element.name, $0.offset) < ($1.element.name, $1.offset) }
      .map(\.element)
  }

  private func clientIdentity<Message>(of request: HTTPRequest<Message>) -> UInt64? {
    self.configuration.sharesResponsesBetweenUsers ? nil : request.clientIdentity
  }

  /// Whether a request's key has all that tells users apart, as far as headers are known for that, or the user of the
  /// cache has said that this does not matter.
  func mayServe<Message>(_ request: HTTPRequest<Message>) -> Bool {
    // They are no part of keys.
    guard request.trailers.isEmpty else { return false }
    if self.configuration.sharesResponsesBetweenUsers || request.context[CachePartition.self] != nil {
      return true
    }
    let userHeaders = UserHeaders(of: request)
    return request.headers.allSatisfy {
      self.configuration.keyHeaders.contains($0.name) || !userHeaders.contains($0.name)
    }
  }

  /// Whether what went to the network for a response is what its key says. Interceptors inside of the cache's may have
  /// added something that is no part of the key, such as a user's token: then the response is for one call alone.
  func isMade(_ response: HTTPResponse, for key: CacheKey) -> Bool {
    guard let sent = response.request else { return response.error != nil }
    let queries = [sent.url.query, PersistedRequestInterceptor.wholeQuery(of: sent)]
    return sent.url.origin == key.origin && sent.url.path == key.path
      && queries.contains(key.query) && sent.contentType == key.contentType
      && sent.context[CachePartition.self] == key.partition
      && self.clientIdentity(of: sent) == key.clientIdentity
      && self.mayServe(sent) && self.keyFields(of: sent) == key.headers
  }

  // MARK: Reading

  /// Looks up the response to a request, fresh or not. There is none to a request that says who the user is in a header
  /// that is no part of its key, or that has trailers.
  ///
  /// - Parameter completion: Called once, at once or later, from any thread.
  public func entry(
    for request: HTTPRequest<ByteBuffer>,
    _ completion: @escaping @Sendable (CacheEntry?) -> Void
  ) {
    guard self.mayServe(request) else { return completion(nil) }
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

  /// Notes that a request passes on its way to the server. To be called in a request hook, for
  /// ``store(_:for:seenAs:)`` in the response hook.
  public func mark(_ request: HTTPRequest<ByteBuffer>) -> CacheMark {
    CacheMark(self, self.key(for: request))
  }

  /// Stores what a server has answered to a request, as far as that is allowed. A 304 renews the entry that it is about;
  /// errors are not stored.
  ///
  /// Nor is the response to a request that says who the user is in a header that is no part of its key, or what
  /// `HTTPResponse.request` says was sent with another key than that of `request`, since interceptors inside have
  /// made it another user's. Nor is what a request has brought that was sent before the cache was told to forget the
  /// response.
  ///
  /// - Parameter mark: What ``mark(_:)`` said when the request passed; without it the response counts as made now.
  public func store(
    _ response: HTTPResponse,
    for request: HTTPRequest<ByteBuffer>,
    seenAs mark: CacheMark? = nil
  ) {
    let key = self.key(for: request)
    let mark = mark.flatMap { $0.cache === self && $0.key == key ? $0 : nil } ?? CacheMark(self, key)
    guard response.error == nil, self.mayServe(request) else { return }
    guard response.request == nil || self.isMade(response, for: key) else { return }
    let source = Source(headers: request.headers, time: mark.time, removalCount: mark.removalCount)
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
    guard rules.mayStore(isPersonal: key.isPersonal) else {
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
