public import Connect
internal import NIOCore

/// Fails unary calls whose response has an HTTP status that is not accepted.
///
/// The protocols themselves refuse any status but 200, and 304 unless the request had `if-none-match`. Errors that a server
/// sent as such keep their code, whatever the status. Use this interceptor for statuses that a service does not want,
/// such as 304, or that another interceptor gives.
public final class HTTPStatusInterceptor: Interceptor, Sendable {
  private let accepted: Set<Int>

  /// An interceptor without state, which any number of calls may share.
  ///
  /// - Parameter accepted: The statuses of responses that succeed: by default 200 alone.
  public init(accepting accepted: some Sequence<Int> = [200]) {
    self.accepted = Set(accepted)
  }

  public func unaryFunction() -> UnaryFunction {
    UnaryFunction(responseFunction: { response, proceed in
      guard response.error == nil, let status = response.httpStatus, !self.accepted.contains(status) else {
        proceed(response)
        return
      }
      var failed = response
      failed.error = ConnectError(
        code: Code(httpStatus: status),
        message: HTTPStatus.describe(status),
        metadata: response.headers,
        httpStatus: status
      )
      failed.message = ByteBuffer()
      proceed(failed)
    }).placed(.userIndependent)
  }
}
