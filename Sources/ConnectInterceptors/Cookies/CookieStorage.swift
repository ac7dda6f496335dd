internal import Connect

/// The cookies of a jar, and which of them go when there are too many. Pure: time comes in.
struct CookieStorage {
  private struct Entry {
    var cookie: Cookie
    /// Counts cookies; one that is replaced keeps its place.
    let creation: UInt64
    /// Counts uses.
    var lastUse: UInt64
  }

  /// RFC 6265, section 6.1, asks for as many at least.
  static let maximumCountPerDomain = 50
  static let maximumCount = 3000

  /// By their domain.
  private var entries: [String: [Entry]] = [:]
  private(set) var count = 0
  private var eventCount: UInt64 = 0

  /// All cookies, in the order of their creation.
  func all(now: Duration) -> [Cookie] {
    self.entries.values.joined().filter { !$0.cookie.isExpired(at: now) }.sorted {
      $0.creation < $1.creation
    }
    .map(\.cookie)
  }

  /// The cookies that go with a request, in the order in which they are sent: RFC 6265, section 5.4.
  mutating func cookies(for url: RequestURL, now: Duration) -> [Cookie] {
    guard self.count > 0 else { return [] }
    let origin = CookieOrigin(url)
    self.eventCount += 1
    var found: [Entry] = []
    for domain in origin.domains {
      guard var entries = self.entries[domain] else { continue }
      self.remove(from: &entries) { $0.cookie.isExpired(at: now) }
      for index in entries.indices where entries[index].cookie.matches(origin, path: url.path) {
        entries[index].lastUse = self.eventCount
        found.append(entries[index])
      }
      self.entries[domain] = entries.isEmpty ? nil : entries
    }
    found.sort { left, right in
      let (leftLength, rightLength) = (left.cookie.path.utf8.count, right.cookie.path.utf8.count)
      return leftLength == rightLength ? left.creation < right.creation : leftLength > rightLength
    }
    return found.map(\.cookie)
  }

  /// Adds a cookie, in place of the one that it replaces. One that has expired removes that.
  ///
  /// - Parameter url: Where the response comes from.
  mutating func insert(_ cookie: Cookie, from url: RequestURL, now: Duration) {
    let origin = CookieOrigin(url)
    guard origin.isSecure || !self.wouldShadow(cookie) else { return }
    self.eventCount += 1
    var entries = self.entries[cookie.domain] ?? []
    let place = entries.firstIndex { cookie.replaces($0.cookie) }
    if cookie.isExpired(at: now) {
      if let place {
        entries.remove(at: place)
        self.count -= 1
      }
    } else if let place {
      entries[place].cookie = cookie
      entries[place].lastUse = self.eventCount
    } else {
      entries.append(Entry(cookie: cookie, creation: self.eventCount, lastUse: self.eventCount))
      self.count += 1
      if entries.count > Self.maximumCountPerDomain {
        self.remove(from: &entries) { $0.cookie.isExpired(at: now) }
      }
      if entries.count > Self.maximumCountPerDomain { self.removeOldest(from: &entries) }
    }
    self.entries[cookie.domain] = entries.isEmpty ? nil : entries
    if self.count > Self.maximumCount { self.shrink(now: now) }
  }

  /// Whether somebody on the way could replace, or hide, a cookie that was set over TLS:
  /// https://datatracker.ietf.org/doc/html/draft-ietf-httpbis-rfc6265bis-20#section-5.7, "leave secure cookies alone".
  private func wouldShadow(_ cookie: Cookie) -> Bool {
    self.entries.contains { domain, entries in
      guard
        domain == cookie.domain || domain.hasSuffix(".\(cookie.domain)")
          || cookie.domain.hasSuffix(".\(domain)")
      else { return false }
      return entries.contains {
        $0.cookie.isSecure && $0.cookie.name == cookie.name
          && Cookie.matches(cookie.path, $0.cookie.path)
      }
    }
  }

  // MARK: Removing

  private mutating func remove(from entries: inout [Entry], where isUnwanted: (Entry) -> Bool) {
    let count = entries.count
    entries.removeAll(where: isUnwanted)
    self.count -= count - entries.count
  }

  private mutating func removeOldest(from entries: inout [Entry]) {
    guard let oldest = entries.indices.min(by: { entries[$0].lastUse < entries[$1].lastUse }) else {
      return
    }
    entries.remove(at: oldest)
    self.count -= 1
  }

  /// Removes expired cookies, else the one that was not used for the longest time.
  private mutating func shrink(now: Duration) {
    for (domain, entries) in self.entries {
      var entries = entries
      self.remove(from: &entries) { $0.cookie.isExpired(at: now) }
      self.entries[domain] = entries.isEmpty ? nil : entries
    }
    guard self.count > Self.maximumCount else { return }
    let oldest = self.entries.min { Self.lastUse($0.value) < Self.lastUse($1.value) }
    guard let (domain, entries) = oldest else { return }
    var rest = entries
    self.removeOldest(from: &rest)
    self.entries[domain] = rest.isEmpty ? nil : rest
  }

  /// When the cookie of a domain that was not used for the longest time was used.
  private static func lastUse(_ entries: [Entry]) -> UInt64 { entries.map(\.lastUse).min() ?? .max }
}
