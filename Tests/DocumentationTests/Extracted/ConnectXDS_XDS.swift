// Extracted from Sources/ConnectXDS/ConnectXDS.docc/XDS.md by `make generate`.

import Connect
import ConnectNIO
import ConnectXDS

private func ConnectXDS_XDS_1() async throws {
  let xds = try XDSClient(bootstrap: .ofEnvironment())
  var configuration = NIOHTTPClient.Configuration(version: .http2Only)
  try configuration.resolve(through: xds, target: "xds:///orders")
  let client = ProtocolClient(
    httpClient: NIOHTTPClient(configuration: configuration),
    config: ProtocolClientConfig(host: "http://orders", networkProtocol: .grpc)
  )
  _ = xds
  _ = configuration
  _ = client
}

private func ConnectXDS_XDS_2() async throws {
  let server = XDSBootstrap.Server(
    uri: "control.example.com:443",
    credentials: .tls(roots: "/etc/mesh/ca.pem", identity: nil, refreshInterval: .seconds(60))
  )
  let bootstrap = XDSBootstrap(servers: [server], node: XDSBootstrap.Node(id: "shop-7"))

  let text = #"{ "xds_servers": [{ "server_uri": "localhost:18000", "channel_creds": [{ "type": "insecure" }] }] }"#
  let other = try XDSBootstrap(parsing: text)
  _ = server
  _ = bootstrap
  _ = text
  _ = other
}

private func ConnectXDS_XDS_3() async throws {
  func show(_ xds: XDSClient) async {
    let snapshot = await xds.snapshot()
    for resource in snapshot.resources where resource.status == .refused {
      print(resource.type, resource.name, resource.refusal?.details ?? "")
    }
    print(snapshot.json)
  }
}
