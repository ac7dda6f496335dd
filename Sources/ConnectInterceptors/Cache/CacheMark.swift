/// When a request passed a cache, on its way to the server, and with which key. What may be stored of its response, and
/// how old that is, depends on it: see ``ResponseCache/store(_:for:seenAs:)``.
public struct CacheMark: Sendable {
  let cache: ResponseCache
  let key: CacheKey
  /// On the cache's clock.
  let time: Duration
  /// How often by then something had been removed that the response may have been about.
  let removalCount: UInt64

  init(_ cache: ResponseCache, _ key: CacheKey) {
    self.cache = cache
    self.key = key
    self.time = cache.now
    self.removalCount = cache.removals.count(for: key)
  }
}
