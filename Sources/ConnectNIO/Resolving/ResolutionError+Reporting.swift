internal import Connect
internal import ConnectChannels

extension ResolutionError {
  /// Whether the name itself is wrong, as far as one can know.
  private var isOfName: Bool {
    switch self.reason {
    case .invalidName, .noSuchName: true
    case .noRecords, .serviceUnavailable, .tooManyAliases, .serverFailure, .unreachable: false
    }
  }

  /// What a resolver reports of a look that has found nothing.
  ///
  /// A name that exists without addresses resolves to nothing: that is an answer, as of a service without servers for
  /// now. A name that does not exist is an error, as are servers that fail: the channel then keeps the addresses that it
  /// knows.
  func report(for origin: Origin) -> Result<ResolverUpdate, ConnectError> {
    switch self.reason {
    case .noRecords, .serviceUnavailable:
      return .success(ResolverUpdate(endpoints: [], timeToLive: self.timeToLive))
    case .invalidName, .noSuchName, .tooManyAliases, .serverFailure, .unreachable:
      let message = "cannot resolve the name of \(origin): \(self.message)"
      return .failure(.ofConnection(.unavailable, message, self, isFinal: self.isOfName))
    }
  }
}
