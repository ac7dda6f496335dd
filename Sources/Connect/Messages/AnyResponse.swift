/// A ``ResponseMessage`` whose message has any type.
@usableFromInline
package struct AnyResponse: Sendable {
  @usableFromInline
  enum Outcome: Sendable {
    case message(any AnyMessage)
    case error(ConnectError)
  }

  @usableFromInline var headers: Headers
  @usableFromInline var outcome: Outcome
  @usableFromInline var trailers: Headers

  @inlinable
  init(_ outcome: Outcome, headers: Headers, trailers: Headers) {
    self.headers = headers
    self.outcome = outcome
    self.trailers = trailers
  }

  init(error: ConnectError) {
    self.init(.error(error), headers: Headers(), trailers: error.metadata)
  }

  /// The error, or nil if the call succeeded.
  @usableFromInline var error: ConnectError? {
    if case .error(let error) = self.outcome { error } else { nil }
  }
}
