/// Weak references to objects that others retain.
struct WeakTable<Key: Hashable, Object: AnyObject> {
  private struct Entry {
    weak var object: Object?
  }

  private var entries: [Key: Entry] = [:]
  /// The number of entries at which entries without an object are swept.
  private var sweepCount = 64

  subscript(key: Key) -> Object? {
    get { self.entries[key]?.object }
    set {
      self.entries[key] = newValue.map { Entry(object: $0) }
      guard self.entries.count >= self.sweepCount else { return }
      self.entries = self.entries.filter { $0.value.object != nil }
      self.sweepCount = max(64, self.entries.count * 2)
    }
  }
}
