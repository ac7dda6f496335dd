import ConnectSwiftCompatibility
import Foundation
import SwiftProtobuf

/// Makes the app's client. `httpClient` is the one thing that another transport changes.
public func makeElizaClient(
  httpClient: HTTPClientInterface,
  networkProtocol: NetworkProtocol,
  provider: TokenProvider,
  log: @escaping @Sendable (String) -> Void
) -> Connectrpc_Eliza_V1_ElizaServiceClient {
  let config = ProtocolClientConfig(
    host: "https://demo.connectrpc.com",
    networkProtocol: networkProtocol,
    codec: ProtoCodec(),
    unaryGET: .enabledForLimitedPayloadSizes(maxBytes: 4_096),
    timeout: 10,
    requestCompression: ProtocolClientConfig.RequestCompression(minBytes: 1_024, pool: GzipCompressionPool()),
    interceptors: [
      InterceptorFactory { AuthInterceptor(config: $0, provider: provider) },
      InterceptorFactory { _ in LoggingInterceptor(log: log) },
    ]
  )
  return Connectrpc_Eliza_V1_ElizaServiceClient(
    client: ProtocolClient(httpClient: httpClient, config: config)
  )
}
