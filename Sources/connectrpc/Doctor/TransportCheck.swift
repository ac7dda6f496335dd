import ConnectChannels
import Foundation
import NIOCore
import NIOPosix
import NIOSSL
import NIOTLS

/// Looks at what is below HTTP: the name, TCP, and TLS with any certificate.
struct TransportCheck {
  let name: String
  let port: Int
  let isSecure: Bool
  let server: ServerOptions

  private static let limit = TimeAmount.seconds(5)

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
          Finding(
            subject: "name",
            verdict: .broken,
            text: failure.message,
            advice: "check the name, or give --resolve"
          )
        ], false
      )
    }
    let texts = addresses.compactMap(\.ipAddress)
    findings.append(
      Finding(
        subject: "name",
        verdict: .works,
        text:
          "\(self.name): \(texts.joined(separator: ", ")), in \(LoadReport.milliseconds(clock.now - start))"
      )
    )
    var isReachable = false
    for address in addresses {
      let found = await self.look(at: address)
      isReachable = isReachable || found.allSatisfy { $0.verdict == .works }
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
    let handshake = Handshake()
    do {
      let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
        .connectTimeout(Self.limit)
        .connect(to: address).get()
      let connected = clock.now
      var findings = [
        Finding(
          subject: "tcp",
          verdict: .works,
          text: "\(peer), in \(LoadReport.milliseconds(connected - start))"
        )
      ]
      if self.isSecure {
        findings.append(await self.tls(on: channel, handshake, since: connected))
      }
      channel.close(promise: nil)
      return findings
    } catch {
      return [
        Finding(
          subject: "tcp",
          verdict: .broken,
          text:
            "\(peer): \((error as? IOError).map { String(cString: strerror($0.errnoCode)) } ?? "no answer")",
          advice: "is the server running, and does a firewall let you through?"
        )
      ]
    }
  }

  private func tls(
    on channel: any Channel,
    _ handshake: Handshake,
    since start: ContinuousClock.Instant
  ) async -> Finding {
    do {
      var configuration = TLSConfiguration.makeClientConfiguration()
      // Whether it is trusted is for the calls below: here its contents are shown.
      configuration.certificateVerification = .none
      if let chain = self.server.cert, let key = self.server.key {
        configuration.certificateChain = try NIOSSLCertificate.fromPEMFile(chain).map { .certificate($0) }
        configuration.privateKey = .privateKey(try NIOSSLPrivateKey(file: key, format: .pem))
      }
      configuration.applicationProtocols = ["h2", "http/1.1"]
      let context = try NIOSSLContext(configuration: configuration)
      let name = self.server.servername ?? self.name
      let isName = (try? SocketAddress(ipAddress: name, port: 0)) == nil && !name.hasPrefix("[")
      let done = channel.eventLoop.makePromise(of: Handshake.Result.self)
      try await channel.eventLoop.submit {
        handshake.done = done
        let tls = try NIOSSLClientHandler(context: context, serverHostname: isName ? name : nil)
        try channel.pipeline.syncOperations.addHandlers([tls, handshake])
      }.get()
      let timer = channel.eventLoop.scheduleTask(in: Self.limit) {
        done.fail(Failure(message: "no answer", exitCode: 78))
      }
      defer { timer.cancel() }
      let result = try await done.futureResult.get()
      let time = LoadReport.milliseconds(ContinuousClock.now - start)
      let alpn = result.alpn.map { "ALPN \($0)" } ?? "no ALPN"
      return self.finding("\(result.version), \(alpn), in \(time)", result.certificate)
    } catch {
      return Finding(
        subject: "tls",
        verdict: .broken,
        text: (error as? Failure)?.message ?? "\(error)",
        advice: "does the server speak TLS on this port? Else say http://; some want --cert and --key"
      )
    }
  }

  private func finding(_ text: String, _ certificate: NIOSSLCertificate?) -> Finding {
    guard let certificate else { return Finding(subject: "tls", verdict: .works, text: text) }
    let now = time_t(Date().timeIntervalSince1970)
    let days = (certificate.notValidAfter - now) / 86_400
    let end = Date(timeIntervalSince1970: TimeInterval(certificate.notValidAfter)).formatted(
      .iso8601.year().month().day()
    )
    let isValid = certificate.notValidBefore <= now && now < certificate.notValidAfter
    return Finding(
      subject: "tls",
      // With -k, calls are made all the same.
      verdict: isValid || self.server.isInsecure ? .works : .broken,
      text:
        "\(text); the certificate ends on \(end), \(days >= 0 ? "in \(days)" : "\(-days)") days\(days < 0 ? " ago" : "")",
      advice: isValid
        ? (days < 14 ? "renew the certificate soon" : nil) : "renew the certificate, or set the clock"
    )
  }
}

/// Waits for the end of a TLS handshake. Confined to its channel's event loop.
private final class Handshake: ChannelInboundHandler, @unchecked Sendable {
  typealias InboundIn = ByteBuffer

  struct Result: Sendable {
    var version: String
    var alpn: String?
    var certificate: NIOSSLCertificate?
  }

  var done: EventLoopPromise<Result>?

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    guard case TLSUserEvent.handshakeCompleted(let alpn)? = event as? TLSUserEvent else { return }
    let tls = try? context.pipeline.syncOperations.handler(type: NIOSSLClientHandler.self)
    let version = tls?.tlsVersion.map { "\($0)" } ?? "TLS"
    self.done?.succeed(Result(version: version, alpn: alpn, certificate: tls?.peerCertificate))
    self.done = nil
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    self.done?.fail(error)
    self.done = nil
    context.close(promise: nil)
  }

  func channelInactive(context: ChannelHandlerContext) {
    self.done?.fail(Failure(message: "the server closed the connection", exitCode: 78))
    self.done = nil
  }
}
