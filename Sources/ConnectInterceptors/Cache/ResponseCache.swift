public import Connect
public import NIOCore

/// Responses of unary calls without side effects, to be given again to identical calls.
///
/// Made once and shared by the calls of one client, or of several. Two interceptors use it: ``CacheReadInterceptor``
/// answers calls, ``CacheWriteInterceptor`` stores what the server answers. Either may be replaced by an interceptor that
/// calls ``entry(for:_:)`` and ``store(_:for:seenAs:)``, and whose hooks are `HookPlacement.innermost`, too.
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
/// if the key tells users apart: by a ``CachePartition``, by the header `authorization`, or by a client
/// certificate.
///
/// No user gets what was made for another, whatever the order of the interceptors:
///
/// - The cache's interceptors stand inside of all byte hooks but those that are `HookPlacement.userIndependent`.
///   So the key has every header that an interceptor of the client, the method, or the call has added. A call that an
///   interceptor rejects gets nothing from the cache.
/// - A response is stored, and shared with calls in flight, only if the request went to the network with the same key
///   (`HTTPResponse.request`). A response that an interceptor inside has made is neither stored nor shared.
/// - A request with trailers bypasses the cache. So does a request with a header that says who the user is
///   (`authorization`, `cookie`, `proxy-authorization`, headers in ``SensitiveHeaders``), if `keyHeaders` leaves it out.
/// - Clients whose transport authenticates them, such as with a TLS client certificate, have separate keys.
///
/// To share responses between users, set a ``CachePartition`` or ``Configuration/sharesResponsesBetweenUsers``.
///
/// Responses of streams are not stored. Only a whole response may be served again, so all messages of a stream, however
/// many, would have to be kept until its end. Their times, which often matter, would be lost. A stream never goes as GET,
/// so a server could not be asked whether it has changed. For a short stream that is always the same, use a unary method.
///
/// Requests are compared by their bytes. Equal messages have equal bytes, also with maps, if the codec can encode
/// deterministically. If it cannot, a response may not be found again, which costs only a call.
public final class ResponseCache: Sendable {
  /// What the cache stores, for how long, and when it answers. It never changes.
  public let configuration: Configuration
  private let storage: any CacheStorage
  private let time: ElapsedTime
  let singleFlight = SingleFlight()
  let removals = CacheRemovals()

  /// A cache with an empty storage in memory, unless another storage is given.
  ///
  /// - Parameters:
  ///   - configuration: See ``configuration``.
  ///   - storage: Where responses are kept. By default in memory, for this cache alone.
  ///   - clock: The time that responses age by.
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

  /// The key of the response to a request.
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

  /// Whether the request's key has all headers known to tell users apart, or the configuration says that this does not
  /// matter.
  func mayServe<Message>(_ request: HTTPRequest<Message>) -> Bool {
    // Trailers are no part of keys.
    guard request.trailers.isEmpty else { return false }
    if self.configuration.sharesResponsesBetweenUsers || request.context[CachePartition.self] != nil {
      return true
    }
    let userHeaders = UserHeaders(of: request)
    return request.headers.allSatisfy {
      self.configuration.keyHeaders.contains($0.name) || !userHeaders.contains($0.name)
    }
  }

  /// Whether the request that went to the network has this key. Interceptors inside of the cache's may have added something
  /// that is no part of the key, such as a user's token. Then the response is for one call alone.
  func isMade(_ response: HTTPResponse, for key: CacheKey) -> Bool {
    guard let sent = response.request else { return response.error != nil }
    let queries = [sent.url.query, PersistedRequestInterceptor.wholeQuery(of: sent)]
    return sent.url.origin == key.origin && sent.url.path == key.path
      && sent.authority?.lowercased() == key.authority
      && queries.contains(key.query) && sent.contentType == key.contentType
      && sent.context[CachePartition.self] == key.partition
      && self.clientIdentity(of: sent) == key.clientIdentity
      && self.mayServe(sent) && self.keyFields(of: sent) == key.headers
  }

  // MARK: Reading

  /// Looks up the response to a request, fresh or not. There is none if the request has trailers, or if its key lacks a
  /// header that says who the user is.
  ///
  /// - Parameters:
  ///   - request: The call's request. Its headers select the variant if the stored response has `vary`.
  ///   - completion: Called once, at once or later, from any thread.
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

  /// Whether an entry may answer a request without the network: HTTP's rules, the request's `cache-control`, and the rules of
  /// its method (``Configuration/setRules(for:isStale:shouldStore:)``) all say that it is fresh.
  public func isFresh(_ entry: CacheEntry, for request: HTTPRequest<ByteBuffer>) -> Bool {
    self.isFresh(entry, CacheControl(request.headers), self.messageRules(for: request))
  }

  /// - Parameters:
  ///   - control: Of the request.
  ///   - rules: Of the request's method.
  func isFresh(_ entry: CacheEntry, _ control: CacheControl, _ rules: BoundMessageRules?) -> Bool {
    let now = self.now
    guard !control.noCache, now < entry.expiry else { return false }
    if let maxAge = control.maxAge, now - entry.birth > maxAge { return false }
    return !self.isStale(entry, by: rules)
  }

  /// - Parameter rules: Of the request's method.
  func isStale(_ entry: CacheEntry, by rules: BoundMessageRules?) -> Bool {
    guard let rules else { return false }
    return rules.isStale(entry.response, age: max(.zero, self.now - entry.birth))
  }

  // MARK: Writing

  /// Notes that a request passes on its way to the server. Call it in a request hook, and pass the result to
  /// ``store(_:for:seenAs:)`` in the response hook.
  public func mark(_ request: HTTPRequest<ByteBuffer>) -> CacheMark {
    CacheMark(self, self.key(for: request))
  }

  /// Stores the response to a request, if that is allowed. A 304 renews its entry; errors are not stored.
  ///
  /// A response is not stored if the request's key lacks a header that says who the user is. Nor is it stored if its
  /// `HTTPResponse.request` has another key than `request`: interceptors inside have then made it another user's. Nor is it
  /// stored if it was requested before the cache was told to forget it, or if its method's rules
  /// (``Configuration/setRules(for:isStale:shouldStore:)``) say so.
  ///
  /// - Parameters:
  ///   - response: What the server answered; HTTP status 304 confirms the stored entry.
  ///   - request: The request that went on towards the server. The entry gets its key.
  ///   - mark: The result of ``mark(_:)`` when the request passed; without it the response counts as made now.
  public func store(
    _ response: HTTPResponse,
    for request: HTTPRequest<ByteBuffer>,
    seenAs mark: CacheMark? = nil
  ) {
    let key = self.key(for: request)
    let mark = mark.flatMap { $0.cache === self && $0.key == key ? $0 : nil } ?? CacheMark(self, key)
    guard response.error == nil, self.mayServe(request) else { return }
    guard response.request == nil || self.isMade(response, for: key) else { return }
    let source = Source(
      headers: request.headers,
      time: mark.time,
      removalCount: mark.removalCount,
      messageRules: self.messageRules(for: request)
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

  /// The request that a response belongs to.
  private struct Source {
    /// The headers of the request.
    var headers: Headers
    /// When the request was sent, as far as is known.
    var time: Duration
    /// The removal count of the key at that time.
    var removalCount: UInt64
    /// The rules of the request's method.
    var messageRules: BoundMessageRules?
  }

  private func store(_ response: HTTPResponse, for key: CacheKey, from source: Source) {
    // A response may have been made as early as its request was sent: RFC 9111, section 4.2.3.
    let rules = CacheRules(response, configuration: self.configuration, requestTime: source.time)
    guard rules.mayStore(isPersonal: key.isPersonal),
      source.messageRules?.shouldStore(response, age: rules.age) ?? true
    else { return self.forget(key, headers: source.headers) }
    let entry = rules.makeEntry(requestHeaders: source.headers)
    // The first variant is stored under the key itself, so that one lookup tells which headers to compare.
    self.storage.entry(for: key) { [storage] first in
      let isOther =
        first.map { !$0.matches(source.headers) && $0.varyingNames == entry.varyingNames } ?? false
      guard isOther else { return self.keep(entry, for: key, inPlaceOf: first, key, source) }
      let variant = key.variant(by: entry.varyingNames, source.headers)
      storage.entry(for: variant) { self.keep(entry, for: variant, inPlaceOf: $0, key, source) }
    }
  }

  /// - Parameters:
  ///   - old: The present entry. It stays if it was requested later, since a response may take long.
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
    // The response may have been removed in between.
    if self.removals.count(for: key) != source.removalCount { self.storage.remove(compact) }
  }

  /// Forgets the response to a request, for example since it is known to have changed. Responses of calls in flight are
  /// neither stored nor shared with later calls.
  public func remove(for request: HTTPRequest<ByteBuffer>) {
    self.remove(self.key(for: request), headers: request.headers)
  }

  func remove(_ key: CacheKey, headers: Headers) {
    self.removals.add(key)
    self.forget(key, headers: headers)
  }

  private func forget(_ key: CacheKey, headers: Headers) {
    self.storage.entry(for: key) { [storage] entry in
      guard let entry else { return }
      storage.remove(entry.matches(headers) ? key : key.variant(by: entry.varyingNames, headers))
    }
  }

  /// Forgets everything, for example when a user logs out. Responses of calls in flight are not stored either.
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

  /// The entry's response, updated by a 304. <https://www.rfc-editor.org/rfc/rfc9111#section-4.3.4>
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
