/// Whether unary calls of methods without side effects (``IdempotencyLevel/noSideEffects``) go as HTTP GET, with the
/// message in the URL. Only the Connect protocol has GET.
///
/// <https://connectrpc.com/docs/protocol#unary-get-request>
public enum UnaryGET: Sendable, Hashable {
  /// All calls are POST.
  case disabled
  /// GET, however long the URL becomes. Servers and proxies have limits, often 8 kB.
  case alwaysEnabled
  /// GET if the whole URL has at most `maxBytes` bytes; otherwise POST.
  case enabledForLimitedPayloadSizes(maxBytes: Int)
}
