import Connect
import ConnectChannels
import ConnectInterceptors
import ConnectLifecycle
import ConnectNIO
import Eliza
import Logging
import Metrics
import ServiceLifecycle

/// What a service sets: a deadline, keepalive, a balancer, the recommended interceptors and one of its own, metrics, and a
/// shutdown that lets calls under way finish. Makes a few calls, says where the time of the last one went, prints the page of
/// metrics that Prometheus reads, and ends.
///
///     swift build && .build/debug/Production https://demo.connectrpc.com
@main
struct Production {
  static func main() async throws {
    let host = CommandLine.arguments.count > 1 ? CommandLine.arguments[1] : "https://demo.connectrpc.com"
    let logger = Logger(label: "production")

    // The backend of metrics, before anything asks for it. Both families, so that dashboards made for gRPC have what they show.
    let families: MetricFamilies = [.openTelemetry, .grpc]
    let page = PrometheusPage(
      CallMetrics.descriptions(of: families) + ChannelMetrics.descriptions(of: families)
    )
    MetricsSystem.bootstrap(page)

    var configuration = NIOHTTPClient.Configuration.defaults
    configuration.http2.keepalive = .init(interval: .seconds(300), timeout: .seconds(20))
    configuration.channel.balancing = .outlierDetection(.defaults, of: .leastRequest())
    configuration.channel.observer = ChannelMetrics(families: families)
    let httpClient = NIOHTTPClient(configuration: configuration)

    var parts = ClientParts(logger: logger)
    parts.metrics = CallMetrics(options: CallMetrics.Options(families: families))
    let client = ProtocolClient(
      httpClient: httpClient,
      config: ProtocolClientConfig(
        host: host,
        interceptors: .recommended(for: parts) + [{ _ in TenantInterceptor() }],
        timeout: .seconds(10)
      )
    )

    let group = ServiceGroup(
      configuration: ServiceGroupConfiguration(
        services: [
          // Listed before its callers: services shut down in reverse order.
          .init(service: HTTPClientService(httpClient, within: .seconds(20))),
          .init(
            service: Patient(eliza: Connectrpc_Eliza_V1_ElizaServiceClient(client: client)),
            successTerminationBehavior: .gracefullyShutdownGroup
          ),
        ],
        gracefulShutdownSignals: [.sigterm, .sigint],
        logger: logger
      )
    )
    try await group.run()
    print(page.text)
  }
}

/// Calls Eliza.
struct Patient: Service {
  let eliza: any Connectrpc_Eliza_V1_ElizaServiceClientInterface

  func run() async {
    let explainer = CallExplainer()
    var options = CallOptions().explained(by: explainer)
    options.context[Tenant.self] = "acme"

    for sentence in ["Hello", "I feel tired.", "Goodbye"] {
      let response = await self.eliza.say(request: .with { $0.sentence = sentence }, options: options)
      switch response.result {
      case .success(let answer): print("Eliza: \(answer.sentence)")
      case .failure(let error): print("failed: \(error.code): \(error.message ?? "")")
      }
    }
    print(explainer.explanation)
  }
}
