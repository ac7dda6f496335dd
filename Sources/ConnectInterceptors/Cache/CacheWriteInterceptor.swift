public import Connect
internal import NIOCore

/// Stores the responses of unary calls without side effects in a ``ResponseCache``.
///
/// Stands inside of ``CacheReadInterceptor``, as the last interceptor that changes requests: it sees what the response
/// depends on.
public final class CacheWriteInterceptor: Interceptor {
  private let cache: ResponseCache
  private var hasNoSideEffects = false
  private var request: HTTPRequest<ByteBuffer>?

  public init(_ cache: ResponseCache) {
    self.cache = cache
  }

  public func unaryMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> UnaryMessageFunction<Input, Output> {
    self.hasNoSideEffects = method.idempotencyLevel == .noSideEffects
    return UnaryMessageFunction()
  }

  public func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      requestFunction: { request, proceed in
        if self.hasNoSideEffects {
          self.request = request
          request.context[CacheMark.self]?.check(self.cache.key(for: request))
        }
        proceed(.success(request))
      },
      responseFunction: { response, proceed in
        if let request = self.request, !CacheControl(request.headers).noStore {
          self.cache.store(response, for: request)
        }
        proceed(response)
      }
    )
  }
}
