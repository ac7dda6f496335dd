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
    headers.add(name: "host", value: request.authority ?? authority)
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
    // NIO's decoder removes white space in front of a value, and leaves it behind.
    for (name, value) in headers { result.add(name: name, value: FieldSpace.trim(value)) }
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

  /// The most bytes of a head with everything beside names and values: status line, separators, white space.
  static func headLimit(_ limit: Int) -> Int {
    let fields = self.parserLimit(limit)
    return fields > Int.max / 2 ? Int.max : fields * 2
  }

  /// Where the body of a response ends (RFC 9112, section 6.3).
  enum Framing: Equatable {
    case length(Int)
    case chunked
    /// The body ends where the connection does.
    case untilClose
    /// This reader and NIO's decoder may not see the same body. The reason is for people.
    case unclear(String)
  }

  /// The framing that NIO's decoder follows. Anything that the decoder may understand in another way is unclear, and has to
  /// be refused at once: else framing is taken for content, or the call waits for bytes that do not come.
  static func framing(of head: NIOHTTP1.HTTPResponseHead) -> Framing {
    if head.status.code == 204 || head.status.code == 304 { return .length(0) }
    let length = head.headers.first(name: "content-length")
    guard let coding = head.headers.first(name: "transfer-encoding") else {
      guard let length else { return .untilClose }
      guard let count = Int(FieldSpace.trim(length)), count >= 0 else {
        return .unclear("content-length '\(PeerText.value(length))' is no length of a body")
      }
      return .length(count)
    }
    guard length == nil else { return .unclear("it has both transfer-encoding and content-length") }
    // The decoder takes spaces behind the word, but no tabs. Codings other than this one are not implemented.
    let isChunked = coding.prefix { $0 != " " }.lowercased() == "chunked"
    guard isChunked, coding.utf8.dropFirst(7).allSatisfy({ $0 == UInt8(ascii: " ") }),
      head.headers["transfer-encoding"].count == 1
    else {
      let codings = head.headers["transfer-encoding"].joined(separator: ", ")
      return .unclear("transfer-encoding '\(PeerText.value(codings))' is not supported, only 'chunked' is")
    }
    return .chunked
  }
}
