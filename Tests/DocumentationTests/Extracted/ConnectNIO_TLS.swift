// Extracted from Sources/ConnectNIO/ConnectNIO.docc/TLS.md by `make generate`.

import Connect
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
  configuration.tlsOfClusters = [
    "payments-blue": .init(
      trustRoots: .pemFile("/etc/tls/blue/ca.pem"),
      clientCertificate: .pemFiles(chain: "/etc/tls/blue/client.pem", privateKey: "/etc/tls/blue/client.key")
    )
  ]
  _ = configuration
}

private func ConnectNIO_TLS_3() async throws {
  var configuration = NIOHTTPClient.Configuration.defaults
  configuration.tls.trustRoots = .spiffeBundleFile("/run/spire/bundle.json", trustDomain: "prod.example")
  configuration.tls.certificateVerification = .names([
    .spiffeID("spiffe://prod.example/billing"),
    .spiffeTrustDomain("stage.example"),
    .dnsName("billing.internal"),
  ])
  _ = configuration
}

private func ConnectNIO_TLS_4() async throws {
  var configuration = NIOHTTPClient.Configuration.defaults
  configuration.tls.certificateVerification = .chainOnly
  configuration.tls.serverVerifier = ServerVerifier { server in
    guard server.names.uris == ["spiffe://prod.example/\(server.host)"] else {
      throw ConnectError(code: .unauthenticated, message: "\(server.host) has another service's certificate")
    }
  }
  _ = configuration
}

private func ConnectNIO_TLS_5() async throws {
  var configuration = NIOHTTPClient.Configuration.defaults
  configuration.tls.revocationLists = ["/etc/service/ca.crl", "/etc/service/issuing-ca.crl"]
  _ = configuration
}

private func ConnectNIO_TLS_6() async throws {
  let options = CallOptions(authority: "tenant-a.api.example.com")
  _ = options
}

private func ConnectNIO_TLS_7() async throws {
  var configuration = NIOHTTPClient.Configuration.defaults
  configuration.tls.keyLogFile = "/var/tmp/keys.log"
  _ = configuration
}
