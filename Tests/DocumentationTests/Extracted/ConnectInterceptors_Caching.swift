// Extracted from Sources/ConnectInterceptors/ConnectInterceptors.docc/Caching.md by `make generate`.

import Connect
import ConnectInterceptors

private func ConnectInterceptors_Caching_1() async throws {
  let cache = ResponseCache(configuration: .init(timeToLive: .seconds(300), staleOnError: .seconds(3600)))
  let config = ProtocolClientConfig(
    host: "https://api.example.com",
    interceptors: [
      { _ in CacheReadInterceptor(cache) },
      { _ in CacheWriteInterceptor(cache) },
    ],
    unaryGET: .enabledForLimitedPayloadSizes(maxBytes: 8192)
  )
  _ = cache
  _ = config
}

private func ConnectInterceptors_Caching_2() async throws {
  let client: ProtocolClient = given()
  let show: (ResponseMessage<Connectrpc_Eliza_V1_SayResponse>) -> Void = given()
  let say = Connectrpc_Eliza_V1_ElizaServiceClient.Methods.say
  let request = Connectrpc_Eliza_V1_SayRequest.with { $0.sentence = "Hello" }

  var options = CallOptions()
  options.context[CachePolicy.self] = .networkFirst
  let response = await client.unary(say, request, options: options)
  if CacheStatus(response.headers) == .stale { print("the network has failed; this is an old answer") }

  for await response in client.cacheAndNetwork(say, request) { show(response) }  // at most two
  _ = client
  _ = show
  _ = say
  _ = request
  _ = options
  _ = response
}

private func ConnectInterceptors_Caching_3() async throws {
  var configuration = ResponseCache.Configuration(timeToLive: .seconds(300))
  configuration.setRules(
    for: Connectrpc_Eliza_V1_ElizaServiceClient.Methods.say,
    isStale: { response, age in
      response.message?.sentence.hasSuffix("?") == true && age > .seconds(10)
    },
    shouldStore: { response, _ in response.message?.sentence.isEmpty == false }
  )
  let cache = ResponseCache(configuration: configuration)
  _ = configuration
  _ = cache
}
