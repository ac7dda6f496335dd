public import Connect
internal import Synchronization

/// The cookies of one user, in memory: RFC 6265. A ``CookieInterceptor`` sends them, and takes them from responses.
///
/// ```swift
/// let jar = CookieJar()
/// let config = ProtocolClientConfig(
///   host: "https://api.example.com",
///   interceptors: [{ _ in CookieInterceptor(jar) }]
/// )
/// ```
///
/// All clients with the same jar are the same user to servers, so each user needs a jar. It holds at most 50 cookies for a
/// domain and 3,000 in all: expired ones go first, then those that were not sent for the longest time. A cookie of more than
/// 4,096 bytes is ignored.
public final class CookieJar: Sendable {
  private struct State {
    var cookies = CookieStorage()
    /// Counts users.
    var user: UInt64 = 0
  }

  private let clock: WallClock
  private let state = Mutex(State())

  /// An empty jar.
  ///
  /// - Parameter wallClock: The time for the expiry of cookies.
  public init(wallClock: WallClock = .system) {
    self.clock = wallClock
  }

  /// All cookies that have not expired, in the order in which they were set first.
  public var cookies: [Cookie] {
    let now = self.clock.now
    return self.state.withLock { $0.cookies.all(now: now) }
  }

  /// The cookies that go with a request, in the order in which they are sent. They count as used.
  public func cookies(for url: RequestURL) -> [Cookie] {
    let now = self.clock.now
    return self.state.withLock { $0.cookies.cookies(for: url, now: now) }
  }

  /// Takes a `Set-Cookie` header of a response. One that is no cookie, that is too large, or that the server may not set, is
  /// ignored.
  ///
  /// - Parameters:
  ///   - setCookie: The value of the header.
  ///   - url: Where the request of this response went.
  public func receive(_ setCookie: String, from url: RequestURL) {
    self.receive([setCookie], from: url, of: nil)
  }

  /// Forgets all cookies, for example when a user logs out. Calls in flight belong to the former user: they bring no
  /// cookies any more, and their next attempts send none.
  public func removeAll() {
    let cookies = self.state.withLock { state in
      state.user += 1
      defer { state.cookies = CookieStorage() }
      return state.cookies
    }
    withExtendedLifetime(cookies) {}
  }

  // MARK: For the interceptor

  /// The number of the present user.
  var user: UInt64 { self.state.withLock { $0.user } }

  /// The cookies that go with a request of a user; none if that is not the present user.
  func cookies(for url: RequestURL, of user: UInt64) -> [Cookie] {
    let now = self.clock.now
    return self.state.withLock { $0.user == user ? $0.cookies.cookies(for: url, now: now) : [] }
  }

  /// Takes `Set-Cookie` headers of a response to a user's request; nil for any user.
  func receive(_ lines: [String], from url: RequestURL, of user: UInt64?) {
    let now = self.clock.now
    // Outside of the lock, since a server chooses the lengths.
    let cookies = lines.compactMap { line in
      SetCookie(line, now: now).flatMap { Cookie($0, from: url) }
    }
    guard !cookies.isEmpty else { return }
    self.state.withLock { state in
      guard user == nil || user == state.user else { return }
      for cookie in cookies { state.cookies.insert(cookie, from: url, now: now) }
    }
  }
}

/// Without values.
extension CookieJar: CustomStringConvertible, CustomReflectable {
  public var description: String {
    "CookieJar(\(self.state.withLock { $0.cookies.count }) cookies)"
  }
  public var customMirror: Mirror { Mirror(self, children: []) }
}
