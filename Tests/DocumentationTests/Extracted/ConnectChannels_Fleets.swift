// Extracted from Sources/ConnectChannels/ConnectChannels.docc/Fleets.md by `make generate`.

import Connect
import ConnectChannels
import ConnectInterceptors
import ConnectNIO

private func ConnectChannels_Fleets_1() async throws {
  var configuration = NIOHTTPClient.Configuration.defaults
  configuration.channel.balancing = .roundRobin
  configuration.channel.healthCheckedService = ""  // grpc.health.v1.Health/Watch; "" is the whole server
  let httpClient = NIOHTTPClient(configuration: configuration)
  _ = configuration
  _ = httpClient
}

private func ConnectChannels_Fleets_2() async throws {
  var configuration = NIOHTTPClient.Configuration.defaults
  configuration.channel.balancing = .outlierDetection(.defaults, of: .leastRequest())
  _ = configuration
}

private func ConnectChannels_Fleets_3() async throws {
  var channel = ChannelConfiguration.defaults
  channel.balancing = .ringHash(.init(key: .header("x-user")))
  let options = CallOptions(headers: ["x-user": ["4711"]])
  _ = channel
  _ = options
}

private func ConnectChannels_Fleets_4() async throws {
  var configuration = NIOHTTPClient.Configuration.defaults
  configuration.channel.observer = ChannelMetrics()  // picks, connections, ejections, queue times
  let httpClient = NIOHTTPClient(configuration: configuration)
  _ = configuration
  _ = httpClient
}

private func ConnectChannels_Fleets_5() async throws {
  let httpClient: NIOHTTPClient = given()
  for snapshot in await httpClient.snapshots() {
    print(snapshot)  // endpoints, connections, calls, last errors
  }
  _ = httpClient
}

private func ConnectChannels_Fleets_6() async throws {
  let httpClient: NIOHTTPClient = given()
  let origin = try Origin("https://api.example.com")
  try httpClient.connect(to: origin)  // warms up
  for await state in try httpClient.connectivityChanges(of: origin) {
    print(state)  // IDLE, CONNECTING, READY, …
  }
  _ = httpClient
  _ = origin
}
