// Extracted from Sources/ConnectNIO/ConnectNIO.docc/Proxies.md by `make generate`.

import ConnectChannels
import ConnectNIO

private func ConnectNIO_Proxies_1() async throws {
  var configuration = NIOHTTPClient.Configuration.defaults
  configuration.proxy = .environment
  configuration.proxy = .proxy(
    try Proxy("http://proxy.example.com:3128"),
    exceptions: NoProxyList(".internal, 10.0.0.0/8")
  )
  let httpClient = NIOHTTPClient(configuration: configuration)
  _ = configuration
  _ = httpClient
}
