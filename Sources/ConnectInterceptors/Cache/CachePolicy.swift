public import Connect

/// Whether a call takes its response from a ``ResponseCache`` or from the network.
///
/// The cache has a policy for all calls; one call may have its own:
///
/// ```swift
/// options.context[CachePolicy.self] = .networkFirst
/// ```
///
/// It concerns unary calls; streams go to the network.
///
/// For both at once there is ``Connect/ProtocolClient/cacheAndNetwork(_:_:options:)``.
public enum CachePolicy: Sendable, Hashable {
  /// A fresh response from the cache, else from the network.
  case cacheFirst
  /// From the network; if that fails, from the cache. An identical call that is under way is joined, so this is no way
  /// to read what was just written; ``networkOnly`` and a request with `cache-control: no-cache` are.
  case networkFirst
  /// From the cache if there is a fresh one; else the call fails with `failed_precondition`, and so do calls with this
  /// policy of their own that a cache has nothing for: those whose method may have side effects, that say `no-store`, or
  /// that ask the server with `if-none-match`.
  case cacheOnly
  /// From the network, even if an identical call is under way. The response is stored.
  case networkOnly
}

extension CachePolicy: CallContextKey {
  /// The cache's own policy.
  public static var defaultValue: CachePolicy? { nil }
}

/// Whose responses a call may share: set in `CallOptions.context`, for example to the number of the user.
///
/// Stands in the cache's keys in place of the headers `authorization` and `cookie`, so that a user's responses are found
/// again when the token is another one.
public enum CachePartition: CallContextKey {
  /// Nil: the headers `authorization` and `cookie` tell users apart.
  public static var defaultValue: String? { nil }
}
