// Extracted from Sources/ConnectNIO/ConnectNIO.docc/TransportConfiguration.md by `make generate`.

import Connect
import ConnectNIO

private func ConnectNIO_TransportConfiguration_1() async throws {
  var configuration = NIOHTTPClient.Configuration.defaults
  configuration.timeouts.connect = .seconds(5)
  configuration.limits.http2ConnectionsPerAddress = 2
  let httpClient = NIOHTTPClient(configuration: configuration)
  _ = configuration
  _ = httpClient
}

private func ConnectNIO_TransportConfiguration_2() async throws {
  let httpClient = NIOHTTPClient(configuration: .init(version: .http2Only))
  _ = httpClient
}

private func ConnectNIO_TransportConfiguration_3() async throws {
  let descriptor: CInt = given()
  let socket = try ConnectedSocket(descriptor: descriptor)
  let httpClient = NIOHTTPClient(configuration: .init(connectedSocket: socket))
  let client = ProtocolClient(
    httpClient: httpClient,
    config: ProtocolClientConfig(host: "http://api.internal")
  )
  _ = descriptor
  _ = socket
  _ = httpClient
  _ = client
}

private func ConnectNIO_TransportConfiguration_4() async throws {
  var configuration = NIOHTTPClient.Configuration.defaults
  configuration.http2.keepalive = .init(interval: .seconds(300), timeout: .seconds(20))
  let httpClient = NIOHTTPClient(configuration: configuration)
  _ = configuration
  _ = httpClient
}

private func ConnectNIO_TransportConfiguration_5() async throws {
  var configuration = NIOHTTPClient.Configuration.defaults
  configuration.eventLoops = 4
  let httpClient = NIOHTTPClient(configuration: configuration)
  _ = configuration
  _ = httpClient
}

private func ConnectNIO_TransportConfiguration_6() async throws {
  let client: ProtocolClient = given()
  let requests: [Connectrpc_Eliza_V1_SayRequest] = []
  let eliza = Connectrpc_Eliza_V1_ElizaServiceClient(client: client)
  try await withTaskExecutorPreference(client.taskExecutor) {
    for request in requests {
      _ = try await eliza.say(request)
    }
  }
  _ = client
  _ = requests
  _ = eliza
}

private func ConnectNIO_TransportConfiguration_7() async throws {
  let httpClient: NIOHTTPClient = given()
  try httpClient.connect(to: Origin("https://api.example.com"))
  for snapshot in await httpClient.snapshots() { print(snapshot) }
  _ = httpClient
}
