internal import Connect

/// Why there is no connection to an address.
struct AddressFailure {
  let address: EndpointAddress
  let error: ConnectError
  /// The reason in a few words; nil if only the whole error explains it.
  let reason: String?

  var text: String { self.reason ?? self.error.message ?? "\(self.error.code)" }
}

extension [AddressFailure] {
  private static var shownFailures: Int { 5 }

  /// One error for all addresses of an endpoint: the last error, with the reasons of all addresses if each has one.
  func combined(peer: String) -> ConnectError? {
    guard let last = self.last, self.count > 1, self.allSatisfy({ $0.reason != nil }) else {
      // An error of a server that was reached says more than an error of one that was not.
      var error = self.last { $0.error.isVersionMismatch }?.error ?? self.last?.error
      // Another address may be reached next time.
      if self.contains(where: { !$0.error.isFinal }) { error?.isFinal = false }
      return error
    }
    var error = last.error
    let reasons = self.suffix(Self.shownFailures).map { "\($0.address): \($0.text)" }.joined(separator: "; ")
    let rest =
      self.count > Self.shownFailures ? "; and \(self.count - Self.shownFailures) more addresses" : ""
    error.message = "cannot connect to \(peer) (\(reasons)\(rest))"
    error.isFinal = self.allSatisfy(\.error.isFinal)
    return error
  }
}
