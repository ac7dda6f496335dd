/// Whether unary calls of methods without side effects (``IdempotencyLevel/noSideEffects``) go as HTTP GET, with the
/// message in the URL. Only the Connect protocol has GET.
///
/// <https://connectrpc.com/docs/protocol#unary-get-request>
public enum UnaryGET: Sendable, Hashable {
  /// All calls are POST.
  case disabled
  /// However long the URL becomes. Servers and proxies have limits, often 8 kB.
  case alwaysEnabled
  /// If the whole URL has at most so many bytes; else the call is POST.
  case enabledForLimitedPayloadSizes(maxBytes: Int)
}
