/// Notes when a request passed a cache on its way to the server, and with which key. Whether its response may be stored,
/// and how old the response is, depends on this mark: see ``ResponseCache/store(_:for:seenAs:)``.
public struct CacheMark: Sendable {
  let cache: ResponseCache
  let key: CacheKey
  /// On the cache's clock.
  let time: Duration
  /// How often the key's response had been removed by then, or more.
  let removalCount: UInt64

  init(_ cache: ResponseCache, _ key: CacheKey) {
    self.cache = cache
    self.key = key
    self.time = cache.now
    self.removalCount = cache.removals.count(for: key)
  }
}
