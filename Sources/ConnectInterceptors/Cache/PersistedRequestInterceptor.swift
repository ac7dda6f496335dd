public import Connect
internal import NIOCore

/// Sends the hash of a large request first, and the request itself only to a server that does not know the hash. Apollo
/// calls this automatic persisted queries. For unary calls of methods without side effects that may go as Connect GET.
///
/// An extension of the Connect protocol:
///
/// 1. The client sends a GET with the header `request-hash`: the SHA-256 of the encoded message as 64 hexadecimal digits
///    in lower case. The first parameter of the query has the same name and value, so that caches on the way tell
///    requests apart. In the place of the message is the byte 7, which is no message in protobuf nor JSON.
/// 2. A server that knows the hash answers as to the message. The response's headers, also those of an error, have
///    `request-hash` with the hash.
/// 3. A server that does not know it answers with an error, `failed_precondition`, and the header
///    `request-hash: unknown`, and lets no cache store that.
/// 4. Then the client sends the whole request, as GET or POST by its length, with the header `request-hash`, which tells
///    the server to keep the message.
///
/// A server without the extension finds a message that does not decode. The request is then sent whole, and for a while
/// the server gets only whole requests. Such a second attempt counts against the call's retries.
///
/// List it last, inside of all interceptors that look at requests.
public final class PersistedRequestInterceptor: Interceptor {
  private static let name = "request-hash"
  private static let unknown = "unknown"
  /// Field 0 of a wire type that does not exist, and a control character that JSON does not allow.
  private static let noMessage = ByteBuffer(bytes: [7])
  /// Errors that do not tell whether the server has the extension.
  private static let inconclusive: Set<Code> = [
    .unavailable, .deadlineExceeded, .canceled, .resourceExhausted, .unauthenticated, .permissionDenied,
  ]

  private let requests: PersistedRequests
  private var mayGoAsGET = false
  /// The hash that was sent, and the request that it stands for.
  private var sent: (hash: String, whole: HTTPRequest<ByteBuffer>)?

  /// An interceptor for one call, as each factory makes it.
  ///
  /// - Parameter requests: What is known of servers; one for all calls of a client.
  public init(_ requests: PersistedRequests) {
    self.requests = requests
  }

  public func unaryMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> UnaryMessageFunction<Input, Output> {
    guard method.idempotencyLevel == .noSideEffects else { return UnaryMessageFunction() }
    return UnaryMessageFunction(
      requestFunction: { request, proceed in
        // Byte hooks are told whether the whole request goes as GET, and it may be too long for that.
        self.mayGoAsGET = request.isGET
        proceed(.success(request))
      }
    )
  }

  public func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      requestFunction: { request, proceed in proceed(.success(self.shorten(request))) },
      responseFunction: { response, proceed in
        guard let sent = self.sent.take() else { return proceed(response) }
        if self.isAnswered(response, hash: sent.hash, origin: sent.whole.url.origin) {
          proceed(response)
        } else {
          proceed.retry(sent.whole)
        }
      }
    )
    .placed(.userIndependent)
  }

  private func shorten(_ request: HTTPRequest<ByteBuffer>) -> HTTPRequest<ByteBuffer> {
    self.sent = nil
    // A request that already has the header is the second attempt.
    guard self.mayGoAsGET, request.message.readableBytes >= self.requests.minimumByteCount,
      request.trailers.isEmpty, !request.headers.contains(Self.name),
      self.requests.mayTry(request.url.origin)
    else { return request }
    let hash = SHA256.hexadecimal(request.message)
    var whole = request
    whole.headers[Self.name] = [hash]
    var short = whole
    short.message = Self.noMessage
    short.isGET = true
    short.url.query = "\(Self.name)=\(hash)" + (request.url.query.map { "&\($0)" } ?? "")
    self.sent = (hash, whole)
    return short
  }

  /// The query of the whole request, if the hash was sent in its place.
  static func wholeQuery(of request: HTTPRequest<Void>) -> String? {
    guard let query = request.url.query, let hash = request.headers.first(Self.name) else {
      return request.url.query
    }
    let parameter = "\(Self.name)=\(hash)"
    if query == parameter { return nil }
    return query.hasPrefix(parameter + "&") ? String(query.dropFirst(parameter.count + 1)) : query
  }

  /// Whether the response answers the whole request, so that no second attempt is due.
  private func isAnswered(_ response: HTTPResponse, hash: String, origin: Origin) -> Bool {
    switch response.headers.first(Self.name) {
    case hash:
      return true
    case Self.unknown:
      return false
    default:
      if response.httpStatus == nil || Self.inconclusive.contains(response.code) { return true }
      self.requests.noteLack(at: origin)
      return false
    }
  }
}
