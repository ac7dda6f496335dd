internal import Synchronization

/// Keeps responses in memory, up to a number of bytes; beyond that, the least recently used responses are removed.
public final class MemoryCacheStorage: CacheStorage {
  /// The bytes of keys and entries together, overhead included.
  public let maximumByteCount: Int
  private let entries: Mutex<LeastRecentlyUsed<CacheKey, CacheEntry>>

  /// An empty storage: 16 MiB unless told otherwise.
  ///
  /// - Parameter maximumByteCount: An entry that is larger than this alone is not kept.
  public init(maximumByteCount: Int = 16 * 1024 * 1024) {
    self.maximumByteCount = maximumByteCount
    self.entries = Mutex(LeastRecentlyUsed(maximumCost: maximumByteCount))
  }

  /// How many bytes are in use, about.
  public var byteCount: Int { self.entries.withLock { $0.cost } }

  /// How many entries are kept now.
  public var count: Int { self.entries.withLock { $0.count } }

  public func entry(for key: CacheKey, _ completion: @escaping @Sendable (CacheEntry?) -> Void) {
    completion(self.entries.withLock { $0.value(for: key) })
  }

  public func store(_ entry: CacheEntry, for key: CacheKey) {
    let cost = key.byteCount + entry.byteCount
    // Removed entries are freed outside of the lock.
    _ = self.entries.withLock { $0.insert(entry, for: key, cost: cost) }
  }

  public func remove(_ key: CacheKey) {
    _ = self.entries.withLock { $0.remove(key) }
  }

  public func removeAll() {
    _ = self.entries.withLock { $0.removeAll() }
  }
}
