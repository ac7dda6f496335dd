/// The channels of a client. A released channel stays in the table while something else retains it, so that nobody gets
/// a second channel to the same place.
package struct ChannelTable<Key: Hashable> {
  private struct Entry {
    weak var channel: OriginChannel?
    /// Nil once the channel was released.
    var held: OriginChannel?
  }

  private var entries: [Key: Entry] = [:]
  /// The number of entries at which entries without a channel are swept.
  private var sweepCount = 64

  package init() {}

  /// Asking for a channel holds it again.
  package subscript(key: Key) -> OriginChannel? {
    mutating get {
      guard let channel = self.entries[key]?.channel else { return nil }
      if self.entries[key]?.held == nil { self.entries[key]?.held = channel }
      return channel
    }
    set {
      self.entries[key] = newValue.map { Entry(channel: $0, held: $0) }
      self.sweep()
    }
  }

  /// The channel; makes it if there is none.
  package mutating func channel(_ key: Key, orMake make: () -> OriginChannel) -> OriginChannel {
    if let channel = self[key] { return channel }
    let channel = make()
    self[key] = channel
    return channel
  }

  /// The channel, if there is one, without holding it.
  package func peek(_ key: Key) -> OriginChannel? { self.entries[key]?.channel }

  package var all: [OriginChannel] { self.entries.values.compactMap(\.channel) }

  /// - Returns: What was held.
  package mutating func release(_ key: Key) -> OriginChannel? {
    self.entries[key]?.held.take()
  }

  private mutating func sweep() {
    guard self.entries.count >= self.sweepCount else { return }
    self.entries = self.entries.filter { $0.value.channel != nil }
    self.sweepCount = max(64, self.entries.count * 2)
  }
}
