public import Connect
internal import NIOCore

/// Stores the responses of unary calls without side effects in a ``ResponseCache``.
///
/// Its byte hooks are `HookPlacement.innermost`, as those of ``CacheReadInterceptor`` are, behind which it has to
/// be listed. So it sees all that tells users apart, wherever interceptors that add such headers are listed. What
/// interceptors inside of it have changed nevertheless it finds in `HTTPResponse.request`, and does not store
/// the response to a request that would have another key.
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
        // One that an interceptor inside has made may be for this user alone.
        if let (request, mark) = self.seen, response.request != nil, !CacheControl(request.headers).noStore {
          self.cache.store(response, for: request, seenAs: mark)
        }
        proceed(response)
      }
    )
    .placed(.innermost)
  }
}
