// Extracted from the doc comments of Sources/ConnectSwiftCompatibility by `make generate`.

import ConnectNIO
import ConnectSwiftCompatibility

extension DocComments {
  private func ProtocolClientConfig_1() async throws {
    var config = ProtocolClientConfig(host: "https://demo.connectrpc.com").native
    config.limits.maximumReceivedMessageSize = 16 * 1024 * 1024
    let client = ProtocolClient(httpClient: NIOHTTPClient(), config: config)
    _ = config
    _ = client
  }

  private func InterceptorFactory_1() async throws {
    _ = InterceptorFactory { config in TenantInterceptor(config: config) }
  }

  private func UnaryInterceptor_1() async throws {
    final class TokenInterceptor: UnaryInterceptor {
      func handleUnaryRequest<Message: ProtobufMessage>(
        _ request: HTTPRequest<Message>,
        proceed: @escaping @Sendable (Result<HTTPRequest<Message>, ConnectError>) -> Void
      ) {
        var headers = request.headers
        headers["authorization"] = ["Bearer 42"]
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
}
