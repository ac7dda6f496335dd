/// An interceptor that can see from a client's configuration that the two do not fit together.
package protocol ConfigurationChecking {
  /// What is wrong, for the log; nil for nothing. Asked with a client's first call.
  func problem(in config: ProtocolClientConfig) -> String?
}
