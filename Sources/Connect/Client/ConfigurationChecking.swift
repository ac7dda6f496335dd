/// An interceptor that can tell whether a client's configuration suits it.
package protocol ConfigurationChecking {
  /// What is wrong, for the log; nil for nothing. Asked with a client's first call.
  func problem(in config: ProtocolClientConfig) -> String?
}
