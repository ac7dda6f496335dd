internal import Connect
internal import NIOCore
internal import Synchronization

/// Travels with a request from a cache's interceptor inwards: what the response is to be shared or stored as, and whether
/// it may be.
///
/// An interceptor inside may have added to the request what the key does not have, such as a user's token. Then the
/// response is for this call alone.
final class CacheMark: Sendable {
  /// Of the interceptor of one call that has made it.
  let id: UInt64
  let cache: ResponseCache
  let key: CacheKey
  /// When the request passed, on the cache's clock.
  let time: Duration
  /// How often by then something had been removed that the response may have been about.
  let removalCount: UInt64
  /// That of a cache's interceptor further outside.
  private let outside: CacheMark?
  private let hasStrayed = Atomic(false)
  private static let lastID = Atomic<UInt64>(0)

  init(
    _ id: UInt64,
    _ cache: ResponseCache,
    _ key: CacheKey,
    outside: CacheMark?
  ) {
    self.id = id
    self.cache = cache
    self.key = key
    self.time = cache.now
    self.removalCount = cache.removals.count(for: key)
    self.outside = outside
  }

  /// A number for an interceptor of a call, or an attempt of it.
  static func makeID() -> UInt64 {
    self.lastID.wrappingAdd(1, ordering: .relaxed).newValue
  }

  /// Whether what the call brings is what the key says.
  var mayShare: Bool { !self.hasStrayed.load(ordering: .acquiring) }

  /// An interceptor has changed the request, which may now have another key.
  func check(_ request: HTTPRequest<ByteBuffer>) {
    if self.cache.key(for: request) != self.key { self.hasStrayed.store(true, ordering: .releasing) }
    self.outside?.check(request)
  }

  /// The request is one of a certain user, as a header says.
  ///
  /// - Parameter header: Its name, in lower case.
  func becomePersonal(by header: String) {
    if self.key.partition == nil, !self.key.headers.contains(where: { $0.name == header }) {
      self.hasStrayed.store(true, ordering: .releasing)
    }
    self.outside?.becomePersonal(by: header)
  }

  /// Whether the request has passed an interceptor before, which now gets it once more.
  private func isMade(by id: UInt64) -> Bool {
    self.id == id || self.outside?.isMade(by: id) == true
  }

  /// The mark that is outside of those of an interceptor and of others inside of it.
  func outside(of id: UInt64) -> CacheMark? {
    self.isMade(by: id) ? (self.id == id ? self.outside : self.outside?.outside(of: id)) : self
  }

  /// The innermost mark of a cache.
  func innermost(of cache: ResponseCache) -> CacheMark? {
    self.cache === cache ? self : self.outside?.innermost(of: cache)
  }
}

extension CacheMark: CallContextKey {
  static var defaultValue: CacheMark? { nil }
}

/// Finds the marks of one call. A call that a hook of another call makes inherits that one's context, and has nothing to
/// do with its marks.
struct CacheMarks: Sendable {
  private let inherited: CacheMark?

  /// To be made where the call is made.
  init() {
    self.inherited = CallContext.current?[CacheMark.self]
  }

  /// The mark that an interceptor of this call has given to the request.
  func mark<Message>(of request: HTTPRequest<Message>) -> CacheMark? {
    guard let mark = request.context[CacheMark.self], mark !== self.inherited else { return nil }
    return mark
  }
}
