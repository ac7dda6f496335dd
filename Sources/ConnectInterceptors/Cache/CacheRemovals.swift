internal import Synchronization

/// Counts removals from a cache, so that a response requested before a removal is not stored or shared after it.
///
/// Keys share counters: at worst a response is not stored because another was removed.
final class CacheRemovals: Sendable {
  private struct Counts {
    var all: UInt64 = 0
    var byStripe = [UInt64](repeating: 0, count: CacheRemovals.stripeCount)
  }

  private static let stripeCount = 64
  private let counts = Mutex(Counts())

  /// How often the key's response was removed, or more. Never decreases.
  func count(for key: CacheKey) -> UInt64 {
    let stripe = Self.stripe(of: key)
    return self.counts.withLock { $0.all + $0.byStripe[stripe] }
  }

  func add(_ key: CacheKey) {
    let stripe = Self.stripe(of: key)
    self.counts.withLock { $0.byStripe[stripe] += 1 }
  }

  func addAll() {
    self.counts.withLock { $0.all += 1 }
  }

  private static func stripe(of key: CacheKey) -> Int {
    Int(UInt(bitPattern: key.hashValue) % UInt(Self.stripeCount))
  }
}
