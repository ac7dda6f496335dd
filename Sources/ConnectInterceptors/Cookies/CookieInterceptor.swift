public import Connect
internal import NIOCore

/// Sends the cookies of a ``CookieJar`` with each attempt of a call, and takes new ones from the headers of each response,
/// also of one that is an error. For unary calls and streams.
///
/// List this interceptor behind interceptors that retry, so that it sees each attempt, and behind those that change a
/// request's URL. A ``ResponseCache`` needs two of them; see ``Part``.
///
/// A `cookie` header that the request has already is kept: the jar's cookies are appended to it, but for those whose names
/// it has. Trailers set no cookies.
public final class CookieInterceptor: Interceptor {
  /// What an interceptor does.
  ///
  /// The keys of a cache have the cookies of requests, so these must be added outside of the cache. Retries of unary calls
  /// stand inside of the cache, so cookies of attempts that failed are seen only further inside:
  ///
  /// ```swift
  /// config.interceptors = [
  ///   { _ in CookieInterceptor(jar, .requests) },
  ///   { _ in CacheReadInterceptor(cache) },
  ///   { _ in CacheWriteInterceptor(cache) },
  ///   { _ in RetryInterceptor(budget: budget) },
  ///   { _ in CookieInterceptor(jar, .responses) },
  /// ]
  /// ```
  public enum Part: Sendable, Hashable {
    /// Sends cookies, and takes them from responses.
    case both
    /// Sends cookies.
    case requests
    /// Takes cookies from responses. Stands inside of a cache that is listed in front of it.
    case responses
  }

  private static let names: Set<String> = ["cookie", "set-cookie"]

  private let jar: CookieJar
  private let part: Part
  /// The user when the call began: its interceptors are made before anything waits.
  private let user: UInt64
  /// Where a stream's request goes.
  private var url: RequestURL?
  /// The header that was added last, and what the request had before. An interceptor inside may send that request again.
  private var added: (header: String, own: [String])?

  /// An interceptor for one call, as each factory makes it.
  ///
  /// - Parameters:
  ///   - jar: The cookies of the user.
  ///   - part: What the interceptor does.
  public init(_ jar: CookieJar, _ part: Part = .both) {
    self.jar = jar
    self.part = part
    self.user = jar.user
  }

  public func unaryFunction() -> UnaryFunction {
    switch self.part {
    case .both:
      UnaryFunction(updateRequest: { self.send(&$0) }, updateResponse: { self.receive($0) })
    case .requests: UnaryFunction(updateRequest: { self.send(&$0) })
    // These hooks change nothing.
    case .responses:
      UnaryFunction(updateResponse: { self.receive($0) }).placed(.userIndependent)
    }
  }

  public func streamFunction() -> StreamFunction {
    StreamFunction(
      requestFunction: { request, proceed in
        self.url = request.addressedURL
        var request = request
        if self.part != .responses { self.send(&request) }
        proceed(.success(request))
      },
      streamResultFunction: self.part == .requests
        ? nil
        : { result, proceed in
          if case .headers(let headers) = result, let url = self.url {
            self.receive(headers, from: url)
          }
          proceed(result)
        }
    )
  }

  // MARK: Requests

  private func send<Message>(_ request: inout HTTPRequest<Message>) {
    if let added = self.added.take(), request.headers["cookie"] == [added.header] {
      request.headers["cookie"] = added.own
    }
    // Also for the cookies that the response sets.
    request = request.marking(Self.names)
    var cookies = self.jar.cookies(for: request.addressedURL, of: self.user)
    guard !cookies.isEmpty else { return }
    let own = request.headers["cookie"].filter { !$0.isEmpty }
    if !own.isEmpty {
      let names = Self.names(in: own)
      cookies.removeAll { names.contains($0.name) }
    }
    // One header only: RFC 6265, section 5.4.
    let header = (own + cookies.map { "\($0.name)=\($0.value)" }).joined(separator: "; ")
    request.headers["cookie"] = [header]
    self.added = (header, own)
  }

  private static func names(in headers: [String]) -> Set<String> {
    var names: Set<String> = []
    for pair in headers.joined(separator: ";").split(separator: ";") {
      names.insert(String(pair.prefix { $0 != "=" }.drop { $0 == " " }))
    }
    return names
  }

  // MARK: Responses

  private func receive(_ response: HTTPResponse) -> ResponseDecision {
    // What a cache answers has set its cookies before, and was perhaps another call's.
    if let url = response.request?.addressedURL, CacheStatus(response.headers) == nil {
      self.receive(response.httpHeaders, from: url)
    }
    return .proceed
  }

  private func receive(_ headers: Headers, from url: RequestURL) {
    guard headers.contains("set-cookie") else { return }
    self.jar.receive(headers["set-cookie"], from: url, of: self.user)
  }
}

extension HTTPRequest {
  /// Where the request goes as cookies see it: to the host that the server is told. Virtual hosts do not share cookies.
  fileprivate var addressedURL: RequestURL {
    guard let authority = self.authority else { return self.url }
    var url = self.url
    if url.origin.scheme.isTCP {
      // What is no host and port is not sent.
      url.origin.host = (try? Authority(ofCall: authority))?.host ?? authority
    } else {
      url.origin.host += " \(authority.lowercased())"
    }
    return url
  }
}
