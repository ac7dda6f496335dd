public import Connect

/// Answers unary calls without side effects from a ``ResponseCache``, by their ``CachePolicy``.
///
/// Identical calls are single-flight: the first goes to the network, and the others get the same response. If the first
/// is cancelled or its deadline passes, another goes in its place.
///
/// Its byte hooks are `HookPlacement.innermost`: they stand inside of all interceptors that may say who the user is,
/// wherever these are listed. So the cache's keys tell users apart. An interceptor that has to stand inside of the cache,
/// such as retries, is listed after it and is `HookPlacement.userIndependent`. List this interceptor before
/// ``CacheWriteInterceptor``.
public final class CacheReadInterceptor: Interceptor {
  private let cache: ResponseCache
  /// Most calls have side effects, and need none.
  private lazy var reading = CacheReading(self.cache)
  private var hasNoSideEffects = false

  /// An interceptor for one call, as each factory makes it.
  public init(_ cache: ResponseCache) {
    self.cache = cache
  }

  public func callFunction(_ method: MethodInfo) -> CallFunction {
    self.hasNoSideEffects = method.idempotencyLevel == .noSideEffects
    guard self.hasNoSideEffects, method.streamType == .unary else { return CallFunction() }
    return CallFunction(
      requestFunction: { request in request.encodesDeterministically = true },
      endFunction: { _ in self.reading.end() }
    )
  }

  public func unaryMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> UnaryMessageFunction<Input, Output> {
    guard self.hasNoSideEffects else { return UnaryMessageFunction() }
    return UnaryMessageFunction(
      updateResponse: { response in
        // Otherwise bytes that do not decode would be served again and again.
        if response.error != nil { self.reading.forgetGiven() }
        return .proceed
      }
    )
  }

  public func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      requestFunction: { request, proceed in
        guard self.hasNoSideEffects else {
          let isCacheOnly = request.context[CachePolicy.self] == .cacheOnly
          return proceed(isCacheOnly ? .failure(.notInCache(path: request.url.path)) : .success(request))
        }
        self.reading.receive(request, proceed)
      },
      responseFunction: { response, proceed in
        self.reading.receive(response, proceed)
      }
    )
    .placed(.innermost)
  }
}

extension CacheReadInterceptor: ConfigurationChecking {
  package func problem(in config: ProtocolClientConfig) -> String? {
    let configuration = self.reading.cache.configuration
    guard !configuration.messageRules.isEmpty else { return nil }
    let codec = configuration.codecs.first { $0.name == config.codec.name }
    if let codec, type(of: codec) == type(of: config.codec) { return nil }
    return
      "the cache has rules for typed responses, but the client's codec, \(type(of: config.codec)) with the name "
      + "\(config.codec.name), is not the one of this name in ResponseCache.Configuration.codecs: responses may not "
      + "decode, and are not stored then"
  }
}
