public import Connect

/// Makes an interceptor for each call of a kind that its type has hooks for.
///
/// ```swift
/// InterceptorFactory { config in TenantInterceptor(config: config) }
/// ```
public struct InterceptorFactory: Sendable {
  /// The factory in this library's form, for `ProtocolClientConfig.interceptors` and `CallOptions.interceptors`. It makes an
  /// interceptor for each call, of whatever kind.
  public let native: Connect::InterceptorFactory
  let servesUnaryCalls: Bool
  let servesStreams: Bool

  /// - Parameter factory: Runs where the call is made. The configuration that it gets has no interceptors.
  public init<Wrapped: Interceptor>(factory: @escaping @Sendable (ProtocolClientConfig) -> Wrapped) {
    self.native = { AdaptedInterceptor<Wrapped>(interceptor: factory(ProtocolClientConfig($0))) }
    self.servesUnaryCalls = Wrapped.self is any UnaryInterceptor.Type
    self.servesStreams = Wrapped.self is any StreamInterceptor.Type
  }

  /// An interceptor of this library's own, to stand among those of connect-swift in one list.
  public init(native: @escaping Connect::InterceptorFactory) {
    self.native = native
    self.servesUnaryCalls = true
    self.servesStreams = true
  }
}
