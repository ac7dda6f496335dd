internal import Connect

/// Why there is no connection to an address.
struct AddressFailure {
  let address: EndpointAddress
  let error: ConnectError
  /// What is behind the error, in a few words; nil if it takes the whole error to say it.
  let reason: String?

  var text: String { self.reason ?? self.error.message ?? "\(self.error.code)" }
}

extension [AddressFailure] {
  private static var shownFailures: Int { 5 }

  /// One error for the addresses of an endpoint: that of the last one, with all others' reasons if they are of one kind.
  func combined(peer: String) -> ConnectError? {
    guard let last = self.last, self.count > 1, self.allSatisfy({ $0.reason != nil }) else {
      // A server that was reached says more than one that was not.
      return self.last { $0.error.isVersionMismatch }?.error ?? self.last?.error
    }
    var error = last.error
    let reasons = self.suffix(Self.shownFailures).map { "\($0.address): \($0.text)" }.joined(separator: "; ")
    let rest =
      self.count > Self.shownFailures ? "; and \(self.count - Self.shownFailures) more addresses" : ""
    error.message = "cannot connect to \(peer) (\(reasons)\(rest))"
    return error
  }
}
