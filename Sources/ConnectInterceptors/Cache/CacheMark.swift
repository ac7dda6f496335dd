internal import Connect

/// When a request passed a cache. Travels with the request in its context, so that whoever stores the response knows.
final class CacheMark: Sendable {
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

extension CacheMark: CallContextKey {
  static var defaultValue: CacheMark? { nil }
}
