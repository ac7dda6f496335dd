// Extracted from Sources/ConnectInterceptors/ConnectInterceptors.docc/Observability.md by `make generate`.

import Connect
import ConnectChannels
import ConnectInterceptors
import Logging

private func ConnectInterceptors_Observability_1() async throws {
  let metrics = CallMetrics()
  let log = CallLog(
    logger: Logger(label: "calls"),
    options: CallLog.Options(sampling: LogSampling(first: 100, thereafter: 100), logsHeaders: true)
  )
  let config = ProtocolClientConfig(
    host: "https://api.example.com",
    interceptors: [
      { TracingInterceptor(config: $0) },
      { MetricsInterceptor(metrics, config: $0) },
      { LoggingInterceptor(log, config: $0) },
    ]
  )
  _ = metrics
  _ = log
  _ = config
}

private func ConnectInterceptors_Observability_2() async throws {
  var parts = ClientParts(logger: Logger(label: "calls"))
  parts.metrics = CallMetrics(options: CallMetrics.Options(families: [.openTelemetry, .grpc]))
  var channel = ChannelConfiguration.defaults
  channel.observer = ChannelMetrics(families: [.openTelemetry, .grpc])
  _ = parts
  _ = channel
}

private func ConnectInterceptors_Observability_3() async throws {
  let client: ProtocolClient = given()
  let request = Connectrpc_Eliza_V1_SayRequest()
  let say = Connectrpc_Eliza_V1_ElizaServiceClient.Methods.say
  let explainer = CallExplainer()
  _ = await client.unary(say, request, options: CallOptions().explained(by: explainer))
  print(explainer.explanation)
  _ = client
  _ = request
  _ = say
  _ = explainer
}
