// Extracted from Sources/Connect/Connect.docc/MigratingFromApollo.md by `make generate`.

import Connect
import ConnectInterceptors

/// Logs each call, and hides what an error says.
struct AuditInterceptor: AsyncUnaryInterceptor, AsyncStreamInterceptor {
  let log: @Sendable (String) -> Void

  func interceptUnary<Input, Output>(
    _ request: HTTPRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: UnaryNext<Input, Output>
  ) async throws -> ResponseMessage<Output> {
    self.log("begin \(method.path)")
    let response = try await next(request)
    self.log("end \(method.path): \(response.code)")
    return response
  }

  func interceptStream<Input, Output>(
    _ request: StreamRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: StreamNext<Input, Output>
  ) async throws -> StreamResponse<Output> {
    self.log("begin \(method.path)")
    return try await next(request).map { message in
      self.log("message of \(method.path)")
      return message
    }.mapErrors { error in
      self.log("end \(method.path): \(error.code)")
      return ConnectError(code: error.code, message: "the service has failed")
    }
  }
}

final class SessionHeader: Interceptor {
  private let session: @Sendable (@escaping @Sendable (String?) -> Void) -> Void

  init(session: @escaping @Sendable (@escaping @Sendable (String?) -> Void) -> Void) {
    self.session = session
  }

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      requestFunction: { [session] request, proceed in
        session { value in
          guard let value else {
            return proceed(.failure(ConnectError(code: .unauthenticated, message: "no session")))
          }
          var request = request
          request.headers["x-session"] = [value]
          proceed(.success(request))
        }
      },
      responseFunction: { response, proceed in
        if response.code == .unauthenticated { proceed.retry(from: .start) } else { proceed(response) }
      }
    )
  }
}

extension ProtocolClientConfig {
  /// A chain of a log, a cache, and retries.
  static func audited(_ log: @escaping @Sendable (String) -> Void) -> ProtocolClientConfig {
    let cache = ResponseCache(configuration: .init(timeToLive: .seconds(300)))
    return ProtocolClientConfig(
      host: "https://api.example.com",
      interceptors: [
        { _ in AuditInterceptor(log: log) },
        { _ in CacheReadInterceptor(cache) },
        { _ in CacheWriteInterceptor(cache) },
        { _ in MaximumRetriesInterceptor(3) },
      ],
      unaryGET: .enabledForLimitedPayloadSizes(maxBytes: 8192)
    )
  }
}
