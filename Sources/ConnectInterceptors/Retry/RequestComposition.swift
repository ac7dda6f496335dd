public import Connect
public import NIOCore

/// Adapters and retriers as one, in order. It may be part of another composition.
///
/// ```swift
/// let parts = RequestComposition(adapters: [version], retriers: [once])
/// config.interceptors = [{ _ in RequestInterceptor(retriers: [ConnectionLostRetrier()], interceptors: [parts]) }]
/// ```
public struct RequestComposition: RequestAdapter, RequestRetrier {
  let adapters: [any RequestAdapter]
  let retriers: [any RequestRetrier]

  /// A composition. It adapts with all adapters, then with each of `interceptors`. It asks all retriers, then each of
  /// `interceptors`, and the first answer other than `doNotRetry` decides.
  ///
  /// - Parameters:
  ///   - adapters: Each receives the result of the previous one. The first that throws ends it.
  ///   - retriers: Asked until the first answer other than `doNotRetry`.
  ///   - interceptors: What is both adapter and retrier.
  public init(
    adapters: [any RequestAdapter] = [],
    retriers: [any RequestRetrier] = [],
    interceptors: [any RequestAdapter & RequestRetrier] = []
  ) {
    // Flat, so that a composition without adapters is known to have none.
    self.adapters = adapters + interceptors.flatMap { ($0 as? RequestComposition)?.adapters ?? [$0] }
    self.retriers = retriers + interceptors.flatMap { ($0 as? RequestComposition)?.retriers ?? [$0] }
  }

  public func adapt(
    _ request: HTTPRequest<ByteBuffer?>,
    for method: MethodInfo
  ) async throws -> HTTPRequest<ByteBuffer?> {
    var request = request
    for adapter in self.adapters { request = try await adapter.adapt(request, for: method) }
    return request
  }

  public func retry(_ attempt: FailedAttempt) async -> RetryResult {
    for retrier in self.retriers {
      let result = await retrier.retry(attempt)
      if case .doNotRetry = result { continue }
      return result
    }
    return .doNotRetry
  }
}

extension [InterceptorFactory] {
  /// Adapters, retriers, and interceptors with hooks, composed in order:
  ///
  /// ```swift
  /// config.interceptors = .composed(
  ///   adapters: [version],
  ///   retriers: [once],
  ///   interceptors: [{ MyInterceptor(config: $0) }]
  /// )
  /// ```
  ///
  /// Before each attempt, all adapters run, then the request hooks of the interceptors, first to last. When an attempt
  /// fails, all retriers are asked first. The interceptors' hooks see only what the retriers let pass: a response, or the error
  /// of an attempt that is not retried. Responses pass hooks last to first, as in any list. Hooks of other levels than that of
  /// bytes stand where they always do: see `Interceptor`.
  ///
  /// Retriers see the request as the interceptors left it. They are not asked if an interceptor fails a request or answers
  /// it itself.
  ///
  /// - Parameters:
  ///   - adapters: See ``RequestComposition``.
  ///   - retriers: See ``RequestComposition``.
  ///   - interceptors: They stand inside of the adapters.
  ///   - holdsStreamHeaders: As ``RetryPolicy/holdsStreamHeaders``.
  public static func composed(
    adapters: [any RequestAdapter] = [],
    retriers: [any RequestRetrier] = [],
    interceptors: [InterceptorFactory],
    holdsStreamHeaders: Bool = true
  ) -> [InterceptorFactory] {
    let outer: InterceptorFactory = { _ in RequestInterceptor(adapters: adapters) }
    let inner: InterceptorFactory = { _ in
      RequestInterceptor(retriers: retriers, holdsStreamHeaders: holdsStreamHeaders)
    }
    return (adapters.isEmpty ? [] : [outer]) + interceptors + (retriers.isEmpty ? [] : [inner])
  }
}
