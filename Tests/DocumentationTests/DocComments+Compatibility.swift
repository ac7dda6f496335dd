import ConnectSwiftCompatibility

extension DocComments {
  /// An interceptor in the form of connect-swift, whose names differ from those of `Connect`.
  final class TenantInterceptor: UnaryInterceptor {
    init(config: ProtocolClientConfig) {}
  }
}
