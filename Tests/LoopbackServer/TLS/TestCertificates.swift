/// A certificate authority, a server certificate for `localhost` and the loopback addresses, and a client
/// certificate, made by the `openssl` command in a temporary folder. They are valid for two days.
public struct TestCertificates: Sendable {
  public let authorityPEM: String
  public let serverCertificatePEM: String
  public let serverKeyPEM: String
  public let clientCertificatePEM: String
  public let clientKeyPEM: String

  /// Arguments that are left out are empty.
  public init(
    authorityPEM: String = "",
    serverCertificatePEM: String = "",
    serverKeyPEM: String = "",
    clientCertificatePEM: String = "",
    clientKeyPEM: String = ""
  ) {
    self.authorityPEM = authorityPEM
    self.serverCertificatePEM = serverCertificatePEM
    self.serverKeyPEM = serverKeyPEM
    self.clientCertificatePEM = clientCertificatePEM
    self.clientKeyPEM = clientKeyPEM
  }

  /// Makes a new authority and new certificates.
  public static func make() async throws -> TestCertificates {
    try await OpenSSL.run { openssl in
      try await self.makeCertificate("authority", openssl, ["basicConstraints=critical,CA:TRUE"])
      try await self.makeCertificate(
        "server",
        openssl,
        signed: true,
        ["basicConstraints=critical,CA:FALSE", "subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1"]
      )
      try await self.makeCertificate("client", openssl, signed: true, ["basicConstraints=critical,CA:FALSE"])
      return TestCertificates(
        authorityPEM: try openssl.read("authority.pem"),
        serverCertificatePEM: try openssl.read("server.pem"),
        serverKeyPEM: try openssl.read("server.key"),
        clientCertificatePEM: try openssl.read("client.pem"),
        clientKeyPEM: try openssl.read("client.key")
      )
    }
  }

  private static func makeCertificate(
    _ name: String,
    _ openssl: OpenSSL,
    signed: Bool = false,
    _ extensions: [String]
  ) async throws {
    var arguments = [
      "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
      "-days", "2", "-subj", "/CN=connect-test-\(name)", "-keyout", "\(name).key", "-out", "\(name).pem",
    ]
    for item in extensions { arguments += ["-addext", item] }
    if signed { arguments += ["-CA", "authority.pem", "-CAkey", "authority.key"] }
    try await openssl(arguments)
  }
}
