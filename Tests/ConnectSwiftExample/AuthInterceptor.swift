import ConnectSwiftCompatibility
import Foundation

/// Where tokens come from; they may take their time.
public protocol TokenProvider: Sendable {
  func fetchToken(completion: @escaping @Sendable (String?) -> Void)
}

/// Adds a token to the requests to one host.
public final class AuthInterceptor: UnaryInterceptor, StreamInterceptor {
  private let host: String
  private let provider: TokenProvider

  public init(config: ProtocolClientConfig, provider: TokenProvider) {
    self.host = URL(string: config.host)?.host ?? ""
    self.provider = provider
  }

  @Sendable
  public func handleUnaryRequest<Message: ProtobufMessage>(
    _ request: HTTPRequest<Message>,
    proceed: @escaping @Sendable (Result<HTTPRequest<Message>, ConnectError>) -> Void
  ) {
    self.authorize(request, proceed: proceed)
  }

  @Sendable
  public func handleStreamStart(
    _ request: HTTPRequest<Void>,
    proceed: @escaping @Sendable (Result<HTTPRequest<Void>, ConnectError>) -> Void
  ) {
    self.authorize(request, proceed: proceed)
  }

  private func authorize<Input>(
    _ request: HTTPRequest<Input>,
    proceed: @escaping @Sendable (Result<HTTPRequest<Input>, ConnectError>) -> Void
  ) {
    guard request.url.host == self.host else {
      proceed(.success(request))
      return
    }
    self.provider.fetchToken { token in
      guard let token = token else {
        proceed(
          .failure(
            ConnectError(
              code: .unauthenticated,
              message: "there is no token",
              exception: nil,
              details: [],
              metadata: [:]
            )
          )
        )
        return
      }
      var headers = request.headers
      headers["Authorization"] = ["Bearer \(token)"]
      proceed(
        .success(
          HTTPRequest(
            url: request.url,
            headers: headers,
            message: request.message,
            method: request.method,
            trailers: request.trailers,
            idempotencyLevel: request.idempotencyLevel
          )
        )
      )
    }
  }
}
