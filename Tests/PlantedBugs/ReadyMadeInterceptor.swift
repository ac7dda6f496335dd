/// The interceptors of `ConnectInterceptors`, alone and together.
package enum ReadyMadeInterceptor {
  package static let all: [ExplorationCase] = [
    .contextInterceptor, .tracingInterceptor, .metricsInterceptor, .loggingInterceptor,
    .httpStatusInterceptor,
    .credentialsInterceptor, .cookieInterceptor, .cacheInterceptors, .persistedRequestInterceptor,
    .retryInterceptor, .maximumRetriesInterceptor, .requestInterceptor, .circuitBreakerInterceptor,
    .concurrencyLimitInterceptor, .recommendedSet,
  ]
}
