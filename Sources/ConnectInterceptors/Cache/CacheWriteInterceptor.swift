public import Connect
internal import NIOCore

/// Stores the responses of unary calls without side effects in a ``ResponseCache``.
///
/// Stands inside of ``CacheReadInterceptor``, as the last interceptor that changes requests: it sees what the response
/// depends on. What ``CredentialsInterceptor`` and ``RequestInterceptor`` change inside of it, it learns, and does not
/// store a response that is another one for that; of other interceptors inside it knows nothing. A header that says who
/// the user is must therefore be added outside of it. Interceptors of a method or of a call stand inside of those of the
/// client.
public final class CacheWriteInterceptor: Interceptor {
  private let cache: ResponseCache
  private let id: UInt64
  private let marks = CacheMarks()
  private var hasNoSideEffects = false
  private var request: HTTPRequest<ByteBuffer>?

  public init(_ cache: ResponseCache) {
    self.cache = cache
    self.id = CacheMark.makeID()
  }

  public func callFunction(_ method: MethodInfo) -> CallFunction {
    self.hasNoSideEffects = method.idempotencyLevel == .noSideEffects
    return CallFunction()
  }

  public func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      requestFunction: { request, proceed in
        guard self.hasNoSideEffects else { return proceed(.success(request)) }
        let marked = self.marked(request)
        self.request = marked
        proceed(.success(marked))
      },
      responseFunction: { response, proceed in
        if let request = self.request, !CacheControl(request.headers).noStore {
          self.cache.store(response, for: request)
        }
        proceed(response)
      }
    )
  }

  private func marked(_ request: HTTPRequest<ByteBuffer>) -> HTTPRequest<ByteBuffer> {
    let given = self.marks.mark(of: request)
    given?.check(request)
    let known = given.flatMap { $0.cache === self.cache && $0.mayShare ? $0.key : nil }
    var request = request
    request.context[CacheMark.self] = CacheMark(
      self.id,
      self.cache,
      known ?? self.cache.key(for: request),
      outside: given?.outside(of: self.id)
    )
    return request
  }
}
