/// The interceptors of `ConnectInterceptors`, alone and together.
package enum ReadyMadeInterceptor {
  package static let all: [ExplorationCase] = [
    .contextInterceptor, .tracingInterceptor, .metricsInterceptor, .loggingInterceptor,
    .callExplainer, .httpStatusInterceptor, .cookieInterceptor, .wireTapInterceptor, .requestSigner,
    .credentialsInterceptor, .cacheInterceptors, .cacheOnlyCall, .persistedRequestInterceptor,
    .retryInterceptor, .maximumRetriesInterceptor, .requestInterceptor, .circuitBreakerInterceptor,
    .concurrencyLimitInterceptor, .recommendedSet,
  ]
}
