/// Where a ``ResponseCache`` keeps responses: in memory (``MemoryCacheStorage``), or in a storage of the user.
///
/// It only decides what to keep and for how long: the cache checks what the storage returns. It may forget anything at
/// any time. All functions are called from any thread, event loops among them, and must not block.
///
/// Times in an entry count from when its cache was made; a storage that outlives the process has to begin empty.
public protocol CacheStorage: Sendable {
  /// Looks an entry up.
  ///
  /// - Parameters:
  ///   - key: The entry's key, as in ``store(_:for:)``.
  ///   - completion: To be called once, at once or later, from any thread.
  func entry(for key: CacheKey, _ completion: @escaping @Sendable (CacheEntry?) -> Void)

  /// Stores an entry. It replaces the key's previous entry.
  func store(_ entry: CacheEntry, for key: CacheKey)

  /// Forgets the entry of a key, if there is one.
  func remove(_ key: CacheKey)

  /// Forgets all entries.
  func removeAll()
}
