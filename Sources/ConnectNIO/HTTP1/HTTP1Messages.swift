internal import Connect
internal import NIOCore
internal import NIOHTTP1

/// What requests and responses look like in the types of NIOHTTP1.
enum HTTP1Messages {
  /// The head of `request`, with the fields that are the transport's.
  ///
  /// - Throws: ``ConnectError`` with `invalid_argument` if the target would not stay on its line.
  static func head(
    of request: HTTPStreamRequest,
    authority: String
  ) throws(ConnectError) -> HTTPRequestHead {
    guard Self.isValid(target: request.target) else {
      throw ConnectError(
        code: .invalidArgument,
        message: "the request's target is empty, or has spaces or control characters"
      )
    }
    var headers = HTTPHeaders()
    headers.reserveCapacity(request.headers.count + 2)
    headers.add(name: "host", value: authority)
    for field in request.headers { headers.add(name: field.name, value: field.value) }
    let method: HTTPMethod
    switch request.method {
    case .get: method = .GET
    case .post: method = .POST
    }
    switch request.body {
    case .complete(let bytes):
      if bytes.readableBytes > 0 || request.method == .post {
        headers.add(name: "content-length", value: String(bytes.readableBytes))
      }
    case .streamed:
      headers.add(name: "transfer-encoding", value: "chunked")
    }
    return HTTPRequestHead(version: .http1_1, method: method, uri: request.target, headers: headers)
  }

  private static func isValid(target: String) -> Bool {
    !target.isEmpty && target.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7f }
  }

  static func headers(_ headers: HTTPHeaders?) -> Headers {
    var result = Headers()
    guard let headers else { return result }
    result.reserveCapacity(headers.count)
    for (name, value) in headers { result.add(name: name, value: value) }
    return result
  }

  static func trailers(_ trailers: Headers) -> HTTPHeaders? {
    trailers.isEmpty ? nil : HTTPHeaders(trailers.map { ($0.name, $0.value) })
  }

  /// The size of a list of fields as HTTP/2 counts it: names, values, and 32 bytes for each field.
  static func size(of headers: HTTPHeaders?) -> Int {
    guard let headers else { return 0 }
    return headers.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 32 }
  }

  /// The parser's own limit. It is well above our limit, so that most responses meet ours, whose error has the exact
  /// figure.
  static func parserLimit(_ limit: Int) -> Int {
    limit > Int.max / 4 ? Int.max : max(limit, 16 * 1024) * 4
  }

  /// The length that the head gives for the body; nil if it gives none that counts.
  static func contentLength(_ head: NIOHTTP1.HTTPResponseHead) -> Int? {
    guard !head.headers.contains(name: "transfer-encoding") else { return nil }
    return head.headers.first(name: "content-length").flatMap { Int($0) }
  }

  /// Whether the body of the response ends where the connection does (RFC 9112, section 6.3).
  static func endsWithConnection(_ head: NIOHTTP1.HTTPResponseHead) -> Bool {
    switch head.status.code {
    case 204, 304:
      return false
    default:
      if let coding = head.headers["transfer-encoding"].last {
        return !coding.lowercased().hasSuffix("chunked")
      }
      return !head.headers.contains(name: "content-length")
    }
  }
}
