/// An interceptor that can tell whether a client's configuration suits it.
package protocol ConfigurationChecking {
  /// What is wrong, for the log; nil for nothing. Asked with a client's first call.
  func problem(in config: ProtocolClientConfig) -> String?

  /// Whether each client of a process that has the interceptor by ``ClientSystem`` should suit it. If not, only clients that
  /// have it by their own configuration are looked at.
  var suitsEachClient: Bool { get }
}

extension ConfigurationChecking {
  package var suitsEachClient: Bool { true }
}
