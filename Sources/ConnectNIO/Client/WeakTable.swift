/// Objects that others keep.
struct WeakTable<Key: Hashable, Object: AnyObject> {
  private struct Entry {
    weak var object: Object?
  }

  private var entries: [Key: Entry] = [:]
  /// At how many entries those are looked for whose objects are gone.
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
