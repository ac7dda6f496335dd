internal import NIOCore
internal import NIOHTTP1
internal import NIOHTTP2
internal import NIOSSL
internal import NIOTLS

/// Builds the pipelines of a server's connections.
struct ConnectionSetup: Sendable {
  let configuration: LoopbackServer.Configuration
  let tlsContext: NIOSSLContext?
  let journal: Journal
  let serve: @Sendable (Exchange) async -> Void

  init(
    configuration: LoopbackServer.Configuration,
    journal: Journal,
    serve: @escaping @Sendable (Exchange) async -> Void
  ) throws {
    self.configuration = configuration
    self.tlsContext = try configuration.tls.map { tls in
      try Self.makeTLSContext(tls, versions: configuration.versions)
    }
    self.journal = journal
    self.serve = serve
  }

  /// Adds the handlers of a connection that was just accepted. To be called on its event loop.
  func initialize(_ channel: any Channel) throws {
    let connection = self.journal.connectionOpened()
    channel.closeFuture.whenComplete { [journal] _ in journal.connectionClosed() }
    let pipeline = channel.pipeline.syncOperations
    if let tlsContext {
      try pipeline.addHandler(NIOSSLServerHandler(context: tlsContext))
      try pipeline.addHandler(self.makeALPNHandler(channel, connection))
      return
    }
    switch self.configuration.versions {
    case .http1Only: try self.addHTTP1(channel, connection)
    case .http2Only: try self.addHTTP2(channel, connection)
    case .all:
      try pipeline.addHandler(
        PrefaceDetector { version in
          switch version {
          case .http1: try self.addHTTP1(channel, connection)
          case .http2: try self.addHTTP2(channel, connection)
          }
        }
      )
    }
  }

  private func makeALPNHandler(
    _ channel: any Channel,
    _ connection: Int
  ) -> ApplicationProtocolNegotiationHandler {
    ApplicationProtocolNegotiationHandler { result in
      channel.eventLoop.makeCompletedFuture {
        if case .negotiated("h2") = result {
          try self.addHTTP2(channel, connection)
        } else if self.configuration.versions == .http2Only {
          channel.close(promise: nil)
        } else {
          try self.addHTTP1(channel, connection)
        }
      }
    }
  }

  private func addHTTP1(_ channel: any Channel, _ connection: Int) throws {
    let pipeline = channel.pipeline.syncOperations
    try pipeline.configureHTTPServerPipeline(withPipeliningAssistance: false, withErrorHandling: true)
    try pipeline.addHandler(self.makeExchangeHandler(.http1, connection))
  }

  private func addHTTP2(_ channel: any Channel, _ connection: Int) throws {
    let settings = self.configuration.http2
    var connectionConfiguration = NIOHTTP2Handler.ConnectionConfiguration()
    connectionConfiguration.initialSettings = [
      HTTP2Setting(parameter: .maxConcurrentStreams, value: settings.maxConcurrentStreams),
      HTTP2Setting(parameter: .initialWindowSize, value: settings.windowSize),
      HTTP2Setting(parameter: .maxHeaderListSize, value: settings.maxHeaderListSize),
    ]
    connectionConfiguration.targetWindowSize = settings.windowSize
    connectionConfiguration.headerBlockValidation = settings.isStrict ? .enabled : .disabled
    connectionConfiguration.contentLengthValidation = settings.isStrict ? .enabled : .disabled
    // NIO treats many resets in a short time as an attack, but tests do this.
    connectionConfiguration.maximumConnectionGlitches = .max
    var streamConfiguration = NIOHTTP2Handler.StreamConfiguration()
    streamConfiguration.targetWindowSize = settings.windowSize
    streamConfiguration.outboundBufferSizeHighWatermark = 65536
    streamConfiguration.outboundBufferSizeLowWatermark = 32768
    // A window that ends at once disables these limits. A count of Int.max would not: NIO allocates this many entries,
    // the size in bytes overflows to almost zero, and it writes behind the allocation.
    streamConfiguration.streamResetFrameRateLimit.windowLength = .nanoseconds(1)
    streamConfiguration.streamErrorRateLimit.windowLength = .nanoseconds(1)
    _ = try channel.pipeline.syncOperations.configureHTTP2Pipeline(
      mode: .server,
      connectionConfiguration: connectionConfiguration,
      streamConfiguration: streamConfiguration
    ) { stream in
      stream.eventLoop.makeCompletedFuture {
        let pipeline = stream.pipeline.syncOperations
        try pipeline.addHandler(StreamResetHandler())
        try pipeline.addHandler(HTTP2FramePayloadToHTTP1ServerCodec())
        try pipeline.addHandler(self.makeExchangeHandler(.http2, connection))
      }
    }
    try channel.pipeline.syncOperations.addHandler(NIOCloseOnErrorHandler())
  }

  private func makeExchangeHandler(_ version: RequestRecord.Version, _ connection: Int) -> ExchangeHandler {
    ExchangeHandler(version: version, connection: connection, journal: self.journal, serve: self.serve)
  }

  private static func makeTLSContext(
    _ tls: LoopbackServer.Configuration.TLS,
    versions: LoopbackServer.Configuration.Versions
  ) throws -> NIOSSLContext {
    let chain = try NIOSSLCertificate.fromPEMBytes(Array(tls.certificates.serverCertificatePEM.utf8))
    let key = try NIOSSLPrivateKey(bytes: Array(tls.certificates.serverKeyPEM.utf8), format: .pem)
    var configuration = TLSConfiguration.makeServerConfiguration(
      certificateChain: chain.map { .certificate($0) },
      privateKey: .privateKey(key)
    )
    configuration.applicationProtocols =
      switch versions {
      case .all: ["h2", "http/1.1"]
      case .http1Only: ["http/1.1"]
      case .http2Only: ["h2"]
      }
    if tls.requiresClientCertificate {
      let authority = try NIOSSLCertificate.fromPEMBytes(Array(tls.certificates.authorityPEM.utf8))
      configuration.certificateVerification = .noHostnameVerification
      configuration.trustRoots = .certificates(authority)
    }
    return try NIOSSLContext(configuration: configuration)
  }
}
