/// The interceptors of `ConnectInterceptors`, alone and together.
package enum ReadyMadeInterceptor {
  package static let all: [ExplorationCase] = [
    .contextInterceptor, .tracingInterceptor, .metricsInterceptor, .loggingInterceptor,
    .httpStatusInterceptor, .cookieInterceptor, .wireTapInterceptor, .requestSigner,
    .credentialsInterceptor, .cacheInterceptors, .persistedRequestInterceptor,
    .retryInterceptor, .maximumRetriesInterceptor, .requestInterceptor, .circuitBreakerInterceptor,
    .concurrencyLimitInterceptor, .recommendedSet,
  ]
}
