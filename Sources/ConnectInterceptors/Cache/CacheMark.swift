internal import Connect
internal import Synchronization

/// Travels with a request from ``CacheReadInterceptor`` inwards: under which key the call flies, and whether what it
/// brings is what the key says.
///
/// An interceptor inside may have added to the request what the key does not have, such as a user's token. Then the
/// response is for this call alone.
final class CacheMark: Sendable {
  private let key: CacheKey
  private let hasStrayed = Atomic(false)

  init(_ key: CacheKey) {
    self.key = key
  }

  var mayShare: Bool { !self.hasStrayed.load(ordering: .acquiring) }

  /// The request would now have another key.
  func check(_ key: CacheKey) {
    if key != self.key { self.hasStrayed.store(true, ordering: .releasing) }
  }

  /// The request is now one of a certain user.
  func becomePersonal() {
    if self.key.partition == nil { self.hasStrayed.store(true, ordering: .releasing) }
  }
}

extension CacheMark: CallContextKey {
  static var defaultValue: CacheMark? { nil }
}
