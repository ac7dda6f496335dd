/// Where the byte hooks of an interceptor stand among those of the other interceptors of a unary call.
///
/// Most hooks stand where they are listed. A cache must not: it has to see everything that distinguishes the requests
/// of two users, whatever the order of the list. With interceptors A, cache, B, C of which C is ``userIndependent``,
/// requests pass A, B, the cache, C.
public enum HookPlacement: Sendable, Hashable {
  /// In the order of the list; outside of all hooks that are ``innermost``.
  case asListed
  /// Inside of all hooks that are ``asListed``, also of those listed behind. Several keep the order of the list.
  case innermost
  /// The author asserts that nothing these hooks do depends on the user. This includes their changes of requests and
  /// responses, and the choice of requests that they let pass. In exchange they may stand inside of a cache: if a hook
  /// listed before them is ``innermost``, they stand inside of that hook.
  ///
  /// If this is not true, one user may see what a cache has stored for another.
  case userIndependent
}
