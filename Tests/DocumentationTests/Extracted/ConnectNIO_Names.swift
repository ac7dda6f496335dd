// Extracted from Sources/ConnectNIO/ConnectNIO.docc/Names.md by `make generate`.

import ConnectChannels
import ConnectNIO

private func ConnectNIO_Names_1() async throws {
  var configuration = NIOHTTPClient.Configuration.defaults
  // Asks the servers of /etc/resolv.conf itself, and again when the answer's time to live is over.
  configuration.channel.resolver = DNSResolver()
  // Servers, ports and weights from SRV records.
  configuration.channel.resolver = DNSResolver.service("_grpc._tcp.example.com")
  // From text, such as an environment variable: dns:, dns://SERVER/, srv:, ipv4:, ipv6:, unix:, vsock:, https://
  configuration.channel.resolver = try Target("dns:api.internal:8080").resolver
  // Given by the program, which may change them at any time.
  let servers = PushResolver()
  servers.update([Endpoint("10.0.0.1:8080"), Endpoint("10.0.0.2:8080")].compactMap { $0 })
  configuration.channel.resolver = servers
  _ = configuration
  _ = servers
}
