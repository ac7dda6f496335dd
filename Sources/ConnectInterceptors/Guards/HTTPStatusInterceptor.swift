public import Connect
internal import NIOCore

/// Fails unary calls whose response has an HTTP status that is not accepted.
///
/// The protocols themselves refuse any status but 200, and 304 unless the request had `if-none-match`. Errors that a server
/// sent as such keep their code, whatever the status. So this is for responses of the network or of another interceptor
/// whose status a service does not want, 304 among them.
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
