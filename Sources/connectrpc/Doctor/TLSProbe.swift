import ConnectNIO
import NIOCore
import NIOPosix
import NIOSSL
import NIOTLS
import Synchronization

/// One TLS handshake with a server, whatever its certificate is.
struct TLSProbe {
  struct Result: Sendable {
    var version: TLSVersion?
    /// The protocol that the server chose from those offered.
    var alpn: String?
    /// What the server has shown, its own certificate first.
    var certificates: [Certificate]
    var asksForCertificate: Bool
  }

  static let limit = TimeAmount.seconds(5)

  /// The name whose certificate the server is asked for (SNI); nil for an IP address.
  let serverHostname: String?
  let server: ServerOptions
  /// Offered by ALPN, best first.
  var applicationProtocols = ["h2", "http/1.1"]
  /// The only version that is offered; nil for all that are secure.
  var version: TLSVersion?

  /// Connects, and shakes hands.
  func run(at address: SocketAddress) async throws -> Result {
    let channel = try await Self.connect(to: address)
    defer { channel.close(promise: nil) }
    return try await self.run(on: channel)
  }

  static func connect(to address: SocketAddress) async throws -> any Channel {
    try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .connectTimeout(Self.limit)
      .connect(to: address).get()
  }

  /// - Throws: ``Failure`` with what went wrong, in words.
  func run(on channel: any Channel) async throws -> Result {
    let seen = Seen()
    do {
      let context = try NIOSSLContext(configuration: self.configuration(seen))
      let done = channel.eventLoop.makePromise(of: TLSHandshake.Outcome.self)
      let (hostname, limit) = (self.serverHostname, Self.limit)
      try await channel.eventLoop.submit {
        let timer = channel.eventLoop.scheduleTask(in: limit) {
          done.fail(Failure(message: "no answer", exitCode: 78))
        }
        done.futureResult.whenComplete { _ in timer.cancel() }
        do {
          let tls = try NIOSSLClientHandler(
            context: context,
            serverHostname: hostname,
            customVerificationCallback: { certificates, promise in
              let shown = certificates.compactMap { (try? $0.toDERBytes()).flatMap { Certificate(der: $0) } }
              seen.result.withLock { $0.certificates = shown }
              promise.succeed(.certificateVerified)
            }
          )
          try channel.pipeline.syncOperations.addHandlers([tls, TLSHandshake(done)])
        } catch {
          done.fail(error)
        }
      }.get()
      let outcome = try await done.futureResult.get()
      var result = seen.result.withLock { $0 }
      result.version = outcome.version
      result.alpn = outcome.alpn
      return result
    } catch let failure as Failure {
      throw failure
    } catch {
      throw Failure(message: TLSAlert.text(error), exitCode: 78)
    }
  }

  private func configuration(_ seen: Seen) throws -> TLSConfiguration {
    var configuration = TLSConfiguration.makeClientConfiguration()
    // The callback, which accepts all certificates, is called only without verification of the name.
    configuration.certificateVerification = .noHostnameVerification
    if let chain = self.server.cert, let key = self.server.key {
      let chain = try NIOSSLCertificate.fromPEMBytes(ServerOptions.bytes(of: chain))
      configuration.certificateChain = chain.map { .certificate($0) }
      configuration.privateKey = .privateKey(
        try NIOSSLPrivateKey(bytes: ServerOptions.bytes(of: key), format: .pem)
      )
    }
    configuration.applicationProtocols = self.applicationProtocols
    if let version = self.version {
      configuration.minimumTLSVersion = version
      configuration.maximumTLSVersion = version
    }
    // In a client, this is called when the server asks for a certificate.
    configuration.sslContextCallback = { _, promise in
      seen.result.withLock { $0.asksForCertificate = true }
      promise.succeed(.noChanges)
    }
    return configuration
  }

  /// What the callbacks of one handshake have noted.
  private final class Seen: Sendable {
    let result = Mutex(Result(certificates: [], asksForCertificate: false))
  }
}

/// Waits for the end of a TLS handshake. Confined to its channel's event loop.
private final class TLSHandshake: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  struct Outcome: Sendable {
    var version: TLSVersion?
    var alpn: String?
  }

  private let done: EventLoopPromise<Outcome>

  init(_ done: EventLoopPromise<Outcome>) {
    self.done = done
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    guard case TLSUserEvent.handshakeCompleted(let alpn)? = event as? TLSUserEvent else { return }
    let tls = try? context.pipeline.syncOperations.handler(type: NIOSSLClientHandler.self)
    self.done.succeed(Outcome(version: tls?.tlsVersion, alpn: alpn))
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    self.done.fail(error)
    context.close(promise: nil)
  }

  func channelInactive(context: ChannelHandlerContext) {
    self.done.fail(Failure(message: "the server closed the connection", exitCode: 78))
  }
}

extension TLSVersion {
  /// For example `TLS 1.3`.
  var name: String {
    switch self {
    case .tlsv1: "TLS 1.0"
    case .tlsv11: "TLS 1.1"
    case .tlsv12: "TLS 1.2"
    case .tlsv13: "TLS 1.3"
    }
  }
}
