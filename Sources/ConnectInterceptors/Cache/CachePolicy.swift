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
  /// From the network; if that fails, from the cache. Joins an identical call in flight, so it may miss what was just
  /// written. To read that, use ``networkOnly`` or a request with `cache-control: no-cache`.
  case networkFirst
  /// A fresh response from the cache; without one the call fails with `failed_precondition`. A call that sets this policy
  /// itself also fails if no cache may answer it: if its method may have side effects, or if it has `no-store` or
  /// `if-none-match`.
  case cacheOnly
  /// From the network, even if an identical call is in flight. The response is stored.
  case networkOnly
}

extension CachePolicy: CallContextKey {
  /// The cache's own policy.
  public static var defaultValue: CachePolicy? { nil }
}

/// Whose responses a call may share: set in `CallOptions.context`, for example to the user's number.
///
/// Replaces the headers `authorization` and `cookie` in the cache's keys, so that a user's responses are still found after
/// the token has changed.
public enum CachePartition: CallContextKey {
  /// Nil: the headers `authorization` and `cookie` tell users apart.
  public static var defaultValue: String? { nil }
}
