// Extracted from Sources/ConnectNIO/ConnectNIO.docc/TLS.md by `make generate`.

import ConnectNIO

private func ConnectNIO_TLS_1() async throws {
  var configuration = NIOHTTPClient.Configuration.defaults
  configuration.tls.trustRoots = .pemFile("/etc/service/ca.pem")
  configuration.tls.clientCertificate = .pemFiles(
    chain: "/etc/service/client.pem",
    privateKey: "/etc/service/client.key"
  )
  let httpClient = NIOHTTPClient(configuration: configuration)
  _ = configuration
  _ = httpClient
}

private func ConnectNIO_TLS_2() async throws {
  var configuration = NIOHTTPClient.Configuration.defaults
  configuration.tls.keyLogFile = "/var/tmp/keys.log"
  _ = configuration
}
