internal import Connect

/// The innermost interceptor: fails a cache-only call that no cache interceptor has answered.
struct CacheOnlyInterceptor: Interceptor {
  func unaryFunction() -> UnaryFunction {
    UnaryFunction(requestFunction: { request, proceed in
      proceed(.failure(.notInCache(path: request.url.path)))
    })
    .placed(.userIndependent)
  }
}

extension ConnectError {
  /// A call with ``CachePolicy/cacheOnly`` has no response in the cache.
  static func notInCache(path: String) -> ConnectError {
    ConnectError(
      code: .failedPrecondition,
      message: "the cache has no fresh response to \(path), and the network is not to be used"
    )
  }
}
