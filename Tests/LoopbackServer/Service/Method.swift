/// A method of the service, for a call in any wire protocol.
struct Method: Sendable {
  enum Kind: Sendable {
    case unary
    case stream
  }

  var kind: Kind
  /// Whether the call may come as GET.
  var isIdempotent = false
  var serve: @Sendable (any WireCall) async throws -> Void
}
