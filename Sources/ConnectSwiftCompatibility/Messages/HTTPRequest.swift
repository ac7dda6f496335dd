public import Connect
internal import NIOCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The HTTP methods that calls use.
public enum HTTPMethod: String, Sendable {
  /// The message is in the URL.
  case get = "GET"
  /// The message is in the body.
  case post = "POST"
}

/// A request as connect-swift's interceptors see it.
///
/// `Input` is the method's input in typed hooks, `Data?` in raw hooks, and `Void` at the start of a stream.
///
/// A request that a hook passes on as it is stays exactly what it was. A new request replaces the URL, the headers, the
/// message and the trailers of the one that the hook received. It inherits all else, such as the time limit and whether the
/// call goes as GET: ``method`` and ``idempotencyLevel`` of a new request change nothing.
public struct HTTPRequest<Input: Sendable>: Sendable {
  /// The message, or its bytes; `Void` at the start of a stream.
  public let message: Input
  private let content: Content

  private enum Content {
    /// A request of a call. `original` has the message, too, in this library's type.
    case received(head: Connect::HTTPRequest<Void>, original: any Sendable)
    case created(CreatedRequest)
  }

  /// A new request, to take the place of one that a hook received.
  ///
  /// - Parameters:
  ///   - url: Where the request goes. An unusable URL fails the call with `invalid_argument`.
  ///   - headers: With `content-type`; without it the content type stays.
  ///   - message: See ``message``.
  ///   - method: Has no effect: the call keeps the method of the received request.
  ///   - trailers: Sent behind the body; nil for none.
  ///   - idempotencyLevel: Has no effect: the call keeps the level of the received request.
  public init(
    url: URL,
    headers: Headers,
    message: Input,
    method: HTTPMethod,
    trailers: Trailers?,
    idempotencyLevel: IdempotencyLevel
  ) {
    self.message = message
    self.content = .created(
      CreatedRequest(
        url: url,
        headers: headers,
        method: method,
        trailers: trailers,
        idempotencyLevel: idempotencyLevel
      )
    )
  }

  init<Message>(_ original: Connect::HTTPRequest<Message>, message: Input) {
    self.message = message
    self.content = .received(head: original.with(()), original: original)
  }

  /// Where the request goes.
  public var url: URL {
    switch self.content {
    case .received(let head, _): head.url.foundationURL
    case .created(let request): request.url
    }
  }

  /// The user's metadata and `content-type`. The headers of the wire protocol are added below the interceptors.
  public var headers: Headers {
    switch self.content {
    case .received(let head, _): head.dictionaryWithContentType
    case .created(let request): request.headers
    }
  }

  /// `get` for a call that goes as GET.
  public var method: HTTPMethod {
    switch self.content {
    case .received(let head, _): head.isGET ? .get : .post
    case .created(let request): request.method
    }
  }

  /// Sent behind the body; nil if there are none.
  public var trailers: Trailers? {
    switch self.content {
    case .received(let head, _): head.trailers.isEmpty ? nil : head.trailers.dictionary
    case .created(let request): request.trailers
    }
  }

  /// What the proto file says of the method that is called.
  public var idempotencyLevel: IdempotencyLevel {
    switch self.content {
    case .received(let head, _): head.method?.idempotencyLevel ?? .unknown
    case .created(let request): request.idempotencyLevel
    }
  }

  /// The request in this library's type.
  ///
  /// - Parameters:
  ///   - given: The request that the hook received.
  ///   - message: The message in the type that the hook's level has.
  /// - Throws: `invalid_argument` for a URL of a new request that cannot be used.
  func native<Message>(
    inPlaceOf given: Connect::HTTPRequest<Message>,
    message: (Input) -> Message
  ) throws(Connect::ConnectError) -> Connect::HTTPRequest<Message> {
    switch self.content {
    case .received(let head, let original):
      return original as? Connect::HTTPRequest<Message> ?? head.with(message(self.message))
    case .created(let request):
      var native = given
      try request.apply(to: &native)
      native.message = message(self.message)
      return native
    }
  }
}

/// What a hook says of a request that it has made.
private struct CreatedRequest: Sendable {
  let url: URL
  let headers: Headers
  let method: HTTPMethod
  let trailers: Trailers?
  let idempotencyLevel: IdempotencyLevel

  /// Changes what differs, so that all else, the order of headers among it, stays as it is.
  func apply<Message>(to request: inout Connect::HTTPRequest<Message>) throws(Connect::ConnectError) {
    if self.url != request.url.foundationURL { request.url = try RequestURL(self.url) }
    if self.headers != request.dictionaryWithContentType {
      var headers = self.headers
      for name in self.headers.keys where name.lowercased() == HeaderConstants.contentType {
        if let contentType = headers.removeValue(forKey: name)?.first { request.contentType = contentType }
      }
      request.headers = Connect::Headers(headers)
    }
    let trailers = self.trailers ?? [:]
    if trailers != request.trailers.dictionary { request.trailers = Connect::Headers(trailers) }
  }
}

extension Connect::HTTPRequest {
  /// The headers with `content-type`, which connect-swift has among them.
  fileprivate var dictionaryWithContentType: [String: [String]] {
    var headers = self.headers.dictionary
    headers[HeaderConstants.contentType] = [self.contentType]
    return headers
  }
}

extension RequestURL {
  /// `unix:/path/of/socket/service/method` for a socket, which is good for reading only.
  fileprivate var foundationURL: URL {
    URL(string: self.description) ?? URL(filePath: self.path)
  }

  /// - Throws: `invalid_argument` if a request cannot go there.
  fileprivate init(_ url: URL) throws(Connect::ConnectError) {
    let text = url.absoluteString
    let end = text.firstIndex { "?#".contains($0) } ?? text.endIndex
    let (origin, path) = try Origin.parse(host: String(text[..<end]))
    self.init(origin: origin, path: path.isEmpty ? "/" : path, query: url.query(percentEncoded: true))
  }
}
