import ConnectChannels
import ConnectNIO
import Foundation
import NIOCore
import NIOPosix
import NIOSSL

/// Checks what is below HTTP: the name, TCP, and TLS with any certificate.
struct TransportCheck {
  let name: String
  let port: Int
  let isSecure: Bool
  let server: ServerOptions

  /// - Returns: What was found, and whether anything answers.
  func run() async -> (findings: [Finding], isReachable: Bool) {
    var findings: [Finding] = []
    let clock = ContinuousClock()
    let start = clock.now
    let addresses: [SocketAddress]
    do {
      addresses = try await self.addresses()
    } catch {
      let failure = Failure(error)
      return (
        [
          Finding("name", .broken, failure.message, advice: "check the name, or give --resolve")
        ], false
      )
    }
    let texts = addresses.compactMap(\.ipAddress)
    findings.append(
      Finding(
        "name",
        .works,
        "\(self.name): \(texts.joined(separator: ", ")), in \((clock.now - start).milliseconds)"
      )
    )
    var isReachable = false
    for address in addresses {
      let found = await self.look(at: address)
      isReachable = isReachable || !found.contains(where: \.isFatal)
      findings += found
    }
    return (findings, isReachable)
  }

  private func addresses() async throws -> [SocketAddress] {
    if let known = try self.server.addresses(of: ServerName(name: self.name, port: self.port)) {
      return try known.compactMap { address in
        guard case .ip(let ip, let port) = address else { return nil }
        return try SocketAddress(ipAddress: "\(ip)", port: port)
      }
    }
    let name = self.name.filter { $0 != "[" && $0 != "]" }
    return try await NIOThreadPool.singleton.runIfActive { try Self.addresses(of: name, port: self.port) }
  }

  private static func addresses(of name: String, port: Int) throws -> [SocketAddress] {
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    let result = getaddrinfo(name, String(port), &hints, &list)
    guard result == 0 else {
      throw Failure(message: "\(name) has no address: \(String(cString: gai_strerror(result)))", exitCode: 78)
    }
    defer { freeaddrinfo(list) }
    var addresses: [SocketAddress] = []
    var next = list
    while let entry = next {
      let info = entry.pointee
      next = info.ai_next
      guard let raw = info.ai_addr else { continue }
      if info.ai_family == AF_INET {
        raw.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
          addresses.append(SocketAddress($0.pointee, host: ""))
        }
      } else if info.ai_family == AF_INET6 {
        raw.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) {
          addresses.append(SocketAddress($0.pointee, host: ""))
        }
      }
    }
    return addresses
  }

  private func look(at address: SocketAddress) async -> [Finding] {
    let clock = ContinuousClock()
    let start = clock.now
    let peer = "\(address.ipAddress ?? "") port \(address.port ?? 0)"
    let channel: any Channel
    do {
      channel = try await TLSProbe.connect(to: address)
    } catch {
      let reason = (error as? IOError).map { String(cString: strerror($0.errnoCode)) } ?? "no answer"
      return [
        Finding(
          "tcp",
          .broken,
          "\(peer): \(reason)",
          advice: "is the server running, and does a firewall let you through?"
        )
      ]
    }
    defer { channel.close(promise: nil) }
    let text = "\(peer), in \((clock.now - start).milliseconds)"
    let tcp = Finding("tcp", .works, text)
    return self.isSecure ? await [tcp] + self.tls(on: channel, at: address) : [tcp]
  }

  // MARK: TLS

  /// What the server's certificate has to name; nil if the name cannot be used.
  private var identity: ReferenceIdentifier? {
    try? ReferenceIdentifier(self.server.servername ?? self.name)
  }

  private var probe: TLSProbe {
    TLSProbe(serverHostname: self.identity?.serverNameIndication, server: self.server)
  }

  private func tls(on channel: any Channel, at address: SocketAddress) async -> [Finding] {
    let start = ContinuousClock.now
    let result: TLSProbe.Result
    do {
      result = try await self.probe.run(on: channel)
    } catch {
      return [
        Finding(
          "tls",
          .broken,
          Failure(error).message,
          advice: "does the server speak TLS on this port? Else say http://; some want --cert and --key"
        )
      ]
    }
    let time = (ContinuousClock.now - start).milliseconds
    let text = "\(result.version?.name ?? "TLS"), in \(time)"
    var findings = [Finding("tls", .works, text)]
    findings += await [self.versions(at: address), self.applicationProtocols(at: address, result.alpn)]
    if result.asksForCertificate { findings.append(self.clientCertificate) }
    let chain = CertificateChain(
      certificates: result.certificates,
      name: self.server.servername ?? self.name,
      identity: self.identity,
      anchors: self.anchors,
      isInsecure: self.server.isInsecure
    )
    return findings + chain.findings
  }

  private func versions(at address: SocketAddress) async -> Finding {
    var names: [String] = []
    var hasOld = false
    for version in [TLSVersion.tlsv13, .tlsv12, .tlsv11, .tlsv1] {
      var probe = self.probe
      probe.version = version
      guard (try? await probe.run(at: address)) != nil else { continue }
      names.append(version.name)
      hasOld = hasOld || version == .tlsv11 || version == .tlsv1
    }
    return Finding(
      "tls versions",
      .works,
      names.isEmpty ? "not known" : names.joined(separator: ", "),
      advice: hasOld ? "let the server refuse TLS 1.0 and 1.1, which are not secure" : nil
    )
  }

  /// - Parameter chosen: The server's choice when all protocols were offered.
  private func applicationProtocols(at address: SocketAddress, _ chosen: String?) async -> Finding {
    var names: [String] = []
    for name in ["h2", "http/1.1"] {
      var probe = self.probe
      probe.applicationProtocols = [name]
      if await (try? probe.run(at: address))?.alpn == name { names.append(name) }
    }
    let text = names.isEmpty ? "none" : "\(names.joined(separator: ", ")); \(chosen ?? "none") is preferred"
    guard !names.contains("h2") else { return Finding("alpn", .works, text) }
    return Finding(
      "alpn",
      .absent,
      text,
      advice: "gRPC needs HTTP/2: let the server, or the proxy in front of it, offer h2"
    )
  }

  private var clientCertificate: Finding {
    let isGiven = self.server.cert != nil
    return Finding(
      "client cert",
      isGiven ? .works : .absent,
      "the server asks for one" + (isGiven ? ", and gets that of --cert" : ""),
      advice: isGiven ? nil : "if calls fail without it, give --cert and --key"
    )
  }

  private var anchors: TrustAnchors? {
    guard let file = self.server.cacert else { return try? SystemTrustRoots().anchors() }
    return FileManager.default.contents(atPath: file).flatMap { TrustAnchors(pem: Array($0)) }
  }
}
