public import Connect

/// What a ``ResponseCache`` had to do with a response, from the response's headers.
///
/// ```swift
/// if CacheStatus(response.headers) == .stale { warn() }
/// ```
///
/// In the headers it is a line `cache-status`, as <https://www.rfc-editor.org/rfc/rfc9211> has it.
public enum CacheStatus: Sendable, Hashable, CaseIterable {
  /// A fresh response from the cache; `age` says for how many seconds it has been there.
  case hit
  /// From the cache, and the server has just said that it has not changed.
  case revalidated
  /// From the cache, since the network failed; it may have expired.
  case stale
  /// The response to an identical call that was in flight.
  case collapsed

  private var line: String {
    switch self {
    case .hit: "connect; hit"
    case .revalidated: "connect; fwd=stale; fwd-status=304"
    case .stale: "connect; hit; detail=network-error"
    case .collapsed: "connect; fwd=miss; collapsed"
    }
  }

  /// Nil if the cache did nothing with the response, except perhaps store it.
  public init?(_ headers: Headers) {
    let lines = headers["cache-status"]
    guard let status = Self.allCases.first(where: { lines.contains($0.line) }) else { return nil }
    self = status
  }

  /// Replaces an earlier status of this cache. Lines of other caches on the way stay.
  func mark(_ headers: inout Headers) {
    let others = headers["cache-status"].filter { line in !Self.allCases.contains { $0.line == line } }
    headers["cache-status"] = others + [self.line]
  }
}
