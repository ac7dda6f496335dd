public import Connect
internal import NIOCore

/// Stores the responses of unary calls without side effects in a ``ResponseCache``.
///
/// List it after ``CacheReadInterceptor``. Its byte hooks are `HookPlacement.innermost`, too: it sees every header that
/// tells users apart, wherever the interceptors that add such headers are listed. Interceptors inside may still have
/// changed the request, as `HTTPResponse.request` shows. If the changed request has another key, the response is not
/// stored.
public final class CacheWriteInterceptor: Interceptor {
  private let cache: ResponseCache
  private var seen: (request: HTTPRequest<ByteBuffer>, mark: CacheMark)?

  /// An interceptor for one call, as each factory makes it.
  public init(_ cache: ResponseCache) {
    self.cache = cache
  }

  public func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      requestFunction: { request, proceed in
        if request.method?.idempotencyLevel == .noSideEffects {
          self.seen = (request, self.cache.mark(request))
        }
        proceed(.success(request))
      },
      responseFunction: { response, proceed in
        // A response that an interceptor inside has made may be for this user alone.
        if let (request, mark) = self.seen, response.request != nil, !CacheControl(request.headers).noStore {
          self.cache.store(response, for: request, seenAs: mark)
        }
        proceed(response)
      }
    )
    .placed(.innermost)
  }
}
