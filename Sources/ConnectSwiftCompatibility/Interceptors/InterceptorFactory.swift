public import Connect

/// Makes an interceptor for each call of a kind that its type has hooks for.
///
/// ```swift
/// InterceptorFactory { config in TokenInterceptor(config: config) }
/// ```
public struct InterceptorFactory: Sendable {
  private let make: @Sendable (ProtocolClientConfig) -> any Connect::Interceptor
  let servesUnaryCalls: Bool
  let servesStreams: Bool

  /// - Parameter factory: Runs where the call is made.
  public init<Wrapped: Interceptor>(factory: @escaping @Sendable (ProtocolClientConfig) -> Wrapped) {
    self.make = { AdaptedInterceptor<Wrapped>(interceptor: factory($0)) }
    self.servesUnaryCalls = Wrapped.self is any UnaryInterceptor.Type
    self.servesStreams = Wrapped.self is any StreamInterceptor.Type
  }

  /// An interceptor of this library's own, to stand among those of connect-swift in one list.
  public init(native: @escaping Connect::InterceptorFactory) {
    self.make = { native($0.nativeWithoutInterceptors) }
    self.servesUnaryCalls = true
    self.servesStreams = true
  }

  /// The factory in this library's form, for `ProtocolClientConfig.interceptors` and `CallOptions.interceptors`. It makes an
  /// interceptor for each call, of whatever kind.
  public var native: Connect::InterceptorFactory {
    { config in self.make(ProtocolClientConfig(config)) }
  }

  /// - Parameter config: What the factory is given.
  func native(with config: ProtocolClientConfig) -> Connect::InterceptorFactory {
    { _ in self.make(config) }
  }
}
