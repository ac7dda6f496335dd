/// Where the byte hooks of an interceptor stand among those of the other interceptors of a unary call.
///
/// Most stand where they are listed. A cache must not: it has to see all that tells one user's request from another's,
/// whatever the order of the list. With interceptors A, cache, B, C of which C is ``userIndependent``, requests pass A, B,
/// the cache, C.
public enum HookPlacement: Sendable, Hashable {
  /// In the order of the list; outside of all hooks that are ``innermost``.
  case asListed
  /// Inside of all hooks that are ``asListed``, also of those listed behind. Several keep the order of the list.
  case innermost
  /// The author's word that nothing these hooks do depends on who the user is: neither what they add to a request, nor
  /// what they make of a response, nor which requests they let pass. In exchange they may stand inside of a cache: if a
  /// hook listed in front of them is ``innermost``, they stand inside of that.
  ///
  /// Without reason, it lets one user see what a cache has stored for another.
  case userIndependent
}
