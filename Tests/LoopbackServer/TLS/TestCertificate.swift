/// One certificate and its key, with the extensions, dates and issuer that a test wants.
public struct TestCertificate: Sendable {
  public enum Validity: Sendable {
    case current, past, future

    fileprivate var dates: (start: String, end: String) {
      switch self {
      case .current: ("20200101000000Z", "20990101000000Z")
      case .past: ("20200101000000Z", "20200201000000Z")
      case .future: ("20980101000000Z", "20990101000000Z")
      }
    }
  }

  public let pem: String
  public let keyPEM: String

  /// Makes a certificate, by default for `localhost` and 127.0.0.1.
  ///
  /// - Parameters:
  ///   - name: The common name of its subject.
  ///   - names: Its subject alternative names in OpenSSL's form; nil for none.
  ///   - extensions: In OpenSSL's form, for example `keyUsage=digitalSignature`.
  ///   - issuer: The certificate that signs it; by default it is self-signed.
  ///   - key: The certificate whose key it reuses; by default it gets a new key.
  ///   - digest: What is signed.
  ///   - version1: Whether to make a certificate of version 1, without any extensions. OpenSSL before 3.4 does.
  public static func make(
    _ name: String,
    _ extensions: [String] = [],
    names: String? = "DNS:localhost,IP:127.0.0.1",
    validity: Validity = .current,
    issuer: TestCertificate? = nil,
    key: TestCertificate? = nil,
    digest: String = "sha256",
    version1: Bool = false
  ) async throws -> TestCertificate {
    try await OpenSSL.run { openssl in
      let extensions = (names.map { ["subjectAltName=\($0)"] } ?? []) + extensions
      try openssl.write(
        """
        [ca]
        default_ca=c
        [c]
        database=index
        new_certs_dir=.
        default_md=\(digest)
        policy=p
        rand_serial=yes
        \(version1 ? "" : "x509_extensions=x")
        [p]
        commonName=supplied
        [x]
        \(extensions.joined(separator: "\n"))

        """,
        to: "configuration"
      )
      try openssl.write("", to: "index")
      if let key {
        try openssl.write(key.keyPEM, to: "key")
      } else {
        let arguments = ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-out", "key"]
        try await openssl(["genpkey"] + arguments)
      }
      try await openssl(["req", "-new", "-key", "key", "-subj", "/CN=\(name)", "-out", "request"])
      if let issuer {
        try openssl.write(issuer.pem, to: "issuer")
        try openssl.write(issuer.keyPEM, to: "issuer-key")
      }
      let signer =
        issuer == nil ? ["-selfsign", "-keyfile", "key"] : ["-cert", "issuer", "-keyfile", "issuer-key"]
      let (start, end) = validity.dates
      try await openssl(
        ["ca", "-batch", "-config", "configuration", "-in", "request", "-out", "certificate", "-notext"]
          + ["-startdate", start, "-enddate", end] + signer
      )
      return TestCertificate(pem: try openssl.read("certificate"), keyPEM: try openssl.read("key"))
    }
  }
}

extension TestCertificate {
  /// A revocation list of this authority, in PEM.
  ///
  /// - Parameters:
  ///   - revoked: Certificates that it has issued.
  ///   - extensions: In OpenSSL's form.
  ///   - end: When the next list comes, for example `20500101000000Z`; by default as in `validity`.
  public func revocationList(
    of revoked: [TestCertificate] = [],
    _ extensions: [String] = [],
    validity: Validity = .current,
    until end: String? = nil
  ) async throws -> String {
    try await OpenSSL.run { openssl in
      try openssl.write(
        """
        [ca]
        default_ca=c
        [c]
        database=index
        default_md=sha256
        crlnumber=number
        \(extensions.isEmpty ? "" : "crl_extensions=x")
        [x]
        \(extensions.joined(separator: "\n"))
        [part]
        onlyuser=TRUE

        """,
        to: "configuration"
      )
      try openssl.write("", to: "index")
      try openssl.write("01\n", to: "number")
      try openssl.write(self.pem, to: "issuer")
      try openssl.write(self.keyPEM, to: "issuer-key")
      let authority = ["ca", "-config", "configuration", "-cert", "issuer", "-keyfile", "issuer-key"]
      for certificate in revoked {
        try openssl.write(certificate.pem, to: "revoked")
        try await openssl(authority + ["-revoke", "revoked"])
      }
      let dates = validity.dates
      try await openssl(
        authority + ["-gencrl", "-out", "list", "-crl_lastupdate", dates.start]
          + ["-crl_nextupdate", end ?? dates.end]
      )
      return try openssl.read("list")
    }
  }
}

extension TestCertificates {
  /// The same certificates with another server certificate, which the server presents with `issuers`.
  public func serving(_ certificate: TestCertificate, issuers: [TestCertificate] = []) -> TestCertificates {
    TestCertificates(
      authorityPEM: self.authorityPEM,
      serverCertificatePEM: ([certificate] + issuers).map(\.pem).joined(),
      serverKeyPEM: certificate.keyPEM,
      clientCertificatePEM: self.clientCertificatePEM,
      clientKeyPEM: self.clientKeyPEM
    )
  }
}
