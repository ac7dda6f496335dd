public import Connect
internal import NIOCore

/// A user's rules about the typed responses of one method.
struct MessageRules: Sendable {
  /// Returns nil if the response does not decode.
  typealias Rule = @Sendable (HTTPResponse, _ age: Duration, any Codec) -> Bool?

  let isStale: Rule?
  let shouldStore: Rule?

  static func rule<Output>(
    _ coding: MessageCoding<Output>,
    _ body: (@Sendable (ResponseMessage<Output>, Duration) -> Bool)?
  ) -> Rule? {
    guard let body else { return nil }
    return { response, age, codec in
      guard let message = try? codec.decode(response.message, as: coding) else { return nil }
      return body(
        ResponseMessage(message: message, headers: response.headers, trailers: response.trailers),
        age
      )
    }
  }
}

/// The rules of a request's method, with the codec of its response.
struct BoundMessageRules: Sendable {
  let rules: MessageRules
  /// Nil if it is not known.
  let codec: (any Codec)?

  /// True also for a response that does not decode: it is no answer to a call.
  func isStale(_ response: HTTPResponse, age: Duration) -> Bool {
    guard let isStale = self.rules.isStale else { return false }
    return self.codec.flatMap { isStale(response, age, $0) } ?? true
  }

  /// False also for a response that does not decode.
  func shouldStore(_ response: HTTPResponse, age: Duration) -> Bool {
    guard let shouldStore = self.rules.shouldStore else { return true }
    return self.codec.flatMap { shouldStore(response, age, $0) } ?? false
  }

  /// Whether calls in flight may have the response.
  func mayShare(_ response: HTTPResponse, age: Duration) -> Bool {
    self.shouldStore(response, age: age) && !self.isStale(response, age: age)
  }
}

extension ResponseCache.Configuration {
  /// Sets rules about the typed responses of a method, in addition to those of HTTP. They replace the method's earlier rules.
  ///
  /// ```swift
  /// var configuration = ResponseCache.Configuration.defaults
  /// configuration.setRules(
  ///   for: say,
  ///   isStale: { response, age in age > .seconds(10) && response.message?.sentence.isEmpty == true },
  ///   shouldStore: { response, _ in response.message?.sentence != "busy" }
  /// )
  /// ```
  ///
  /// A response is stored only if HTTP's rules and `shouldStore` allow it; otherwise an older response of the same key goes, too.
  /// A stored response is fresh only if HTTP's rules say so and `isStale` does not. One that is stale by `isStale` may still be
  /// confirmed by the server (304), or stand in after an error for ``staleOnError``. Calls that wait for an identical call
  /// in flight get its response only if it is to be stored and is not stale.
  ///
  /// The cache sees encoded responses, and decodes them for these rules with ``codecs``. A response that does not decode is
  /// neither stored nor fresh. Methods without rules cost nothing.
  ///
  /// - Parameters:
  ///   - method: A unary method without side effects. Other methods are not cached.
  ///   - isStale: Asked each time the stored response is about to be given, with its age. Nil for never stale. It is called
  ///     on any thread, must not block, and sees the response as the server sent it.
  ///   - shouldStore: Asked before a response is stored or shared, and when the server has confirmed a stored one. The age is
  ///     what the response had when it came, by its header `age`. Nil to store all. Called as `isStale` is.
  public mutating func setRules<Input, Output>(
    for method: MethodSpec<Input, Output>,
    isStale: (@Sendable (_ response: ResponseMessage<Output>, _ age: Duration) -> Bool)? = nil,
    shouldStore: (@Sendable (_ response: ResponseMessage<Output>, _ age: Duration) -> Bool)? = nil
  ) {
    self.messageRules[method.path] = MessageRules(
      isStale: MessageRules.rule(method.output, isStale),
      shouldStore: MessageRules.rule(method.output, shouldStore)
    )
  }

  /// The codec that a content type names; nil if it is not among ``codecs``.
  func codec(of contentType: String) -> (any Codec)? {
    let type = contentType.prefix { $0 != ";" }.trimmed
    let name =
      if type.hasPrefix("application/grpc") {
        type.split(separator: "+", maxSplits: 1).dropFirst().first ?? "proto"
      } else {
        type.drop(while: { $0 != "/" }).dropFirst()
      }
    return self.codecs.first { $0.name == name }
  }
}

extension ResponseCache {
  /// The rules of a request's method; nil for none.
  func messageRules(for request: HTTPRequest<ByteBuffer>) -> BoundMessageRules? {
    guard !self.configuration.messageRules.isEmpty,
      let rules = self.configuration.messageRules[request.method?.path ?? request.url.path]
    else { return nil }
    return BoundMessageRules(rules: rules, codec: self.configuration.codec(of: request.contentType))
  }
}
