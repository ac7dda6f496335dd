import Connect
import ConnectChannels
import ConnectSimulation
import ConnectTesting

/// The message of the tests.
struct Text: Codable, Sendable, Equatable {
  var text: String
}

typealias TextMethod = MethodSpec<Text, Text>

extension MethodSpec where Input == Text, Output == Text {
  static let greet = TextMethod(codablePath: "/test.Greeter/Greet", streamType: .unary)
  static let countdown = TextMethod(codablePath: "/test.Greeter/Countdown", streamType: .serverStream)
}

/// A service in a simulation, and a client of it.
struct Greeters {
  let cluster: SimulatedCluster
  let service: SimulatedService
  let httpClient: SimulatedHTTPClient
  let client: ProtocolClient

  init(
    seed: UInt64 = 1,
    servers: Int = 3,
    zones: [String] = ["a"],
    balancing: BalancingPolicy = .roundRobin,
    timeout: Duration? = .seconds(1),
    interceptors: [InterceptorFactory] = [],
    setup: (SimulatedServer) -> Void = { _ in },
    configure: (inout ChannelConfiguration, inout ProtocolClientConfig) -> Void = { _, _ in }
  ) {
    let cluster = SimulatedCluster(seed: seed)
    self.cluster = cluster
    self.service = cluster.service("greeter.internal:443", servers: servers, zones: zones) { server in
      server.latency = .constant(.milliseconds(10))
      let address = server.address
      server.onUnary(.greet) { request, _ in Text(text: "\(request.text) from \(address)") }
      server.onServerStream(.countdown) { request, responses, context in
        for number in (1...(Int(request.text) ?? 1)).reversed() {
          try await responses.send(Text(text: "\(number)"))
          try await context.sleep(for: .milliseconds(100))
        }
      }
      setup(server)
    }
    var channel = ChannelConfiguration(balancing: balancing)
    var config = ProtocolClientConfig(
      host: "https://greeter.internal:443",
      codec: JSONCodec(),
      interceptors: interceptors,
      timeout: timeout
    )
    configure(&channel, &config)
    self.httpClient = cluster.httpClient(channel)
    self.client = ProtocolClient(httpClient: self.httpClient, config: config)
  }

  func run(
    for duration: Duration = .seconds(60),
    load: SimulatedLoad = .open(perSecond: 100)
  ) async -> SimulationReport {
    let client = self.client
    return await self.cluster.run(for: duration, load: load) { number in
      _ = try await client.unary(.greet, Text(text: "\(number)")).get()
    }
  }
}
