// Extracted from Sources/ConnectChannels/ConnectChannels.docc/ConnectChannels.md by `make generate`.

import ConnectChannels
import ConnectNIO

private func ConnectChannels_ConnectChannels_1() async throws {
  var configuration = NIOHTTPClient.Configuration.defaults
  configuration.channel.resolver = DNSResolver()
  configuration.channel.balancing = .outlierDetection(.defaults, of: .leastRequest())
  _ = configuration
}
