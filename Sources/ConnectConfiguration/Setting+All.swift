internal import Connect
internal import ConnectChannels
internal import ConnectNIO

extension Setting {
  /// All settings that there are. The documentation has them in the same order.
  package static let all: [Setting] = calls + messages + connections + security + fleet

  private static let calls: [Setting] = [
    .text("host", "http://host:port, https://host:port, unix:/path, unix-abstract:NAME or vsock:CID:PORT") {
      (host, draft) throws(Refusal) in
      do throws(ConnectError) {
        _ = try Origin.parse(host: host)
      } catch {
        throw Refusal()
      }
      draft.settings.client.host = host
    },
    .choice(
      "protocol",
      [
        "connect": NetworkProtocol.connect, "grpc": .grpc, "grpc-web": .grpcWeb,
        "grpc-web-text": .grpcWebText,
        "automatic": .automatic(),
      ]
    ) { $1.settings.client.networkProtocol = $0 },
    .choice("codec", ["proto": ProtoCodec() as any Codec, "json": JSONCodec() as any Codec]) {
      $1.settings.client.codec = $0
    },
    .optionalDuration("timeout", atLeast: .milliseconds(1)) { $1.settings.client.timeout = $0 },
    .duration("deadlineMargin") { $1.settings.client.deadlineMargin = $0 },
    .flag("waitForReady") { $1.settings.client.waitForReady = $0 },
    .integer("get.maximumBytes", 0...(.max)) {
      $1.settings.client.unaryGET = $0 == 0 ? .disabled : .enabledForLimitedPayloadSizes(maxBytes: $0)
    },
    .integer("retry.maximumAttempts", 2...MethodConfig.maximumAttempts) { $1.retry.maximumAttempts = $0 },
    .duration("retry.initialBackoff", atLeast: .milliseconds(1)) { $1.retry.initialBackoff = $0 },
    .duration("retry.maximumBackoff", atLeast: .milliseconds(1)) { $1.retry.maximumBackoff = $0 },
    .number("retry.backoffMultiplier", atLeast: 1) { $1.retry.backoffMultiplier = $0 },
    .list("retry.codes", Code.allCases.filter { $0 != .ok }.map { ($0.name, $0) }, mayBeEmpty: false) {
      $1.retry.retryableCodes = Set($0)
    },
  ]

  private static let messages: [Setting] = [
    .text("compression.requests", "none or one of \(poolNames)") { (name, draft) throws(Refusal) in
      guard name != "none" else {
        draft.settings.client.compression.requests = nil
        return
      }
      guard let pool = pools.first(where: { $0.name == name }) else { throw Refusal() }
      draft.settings.client.compression.requests = pool.value
    },
    .integer("compression.minimumBytes", 0...(.max)) {
      $1.settings.client.compression.minimumRequestBytes = $0
    },
    .list("compression.responses", pools, mayBeEmpty: true) { $1.settings.client.compression.responses = $0 },
    .integer("limits.receivedMessageBytes", 0...(.max)) {
      $1.settings.client.limits.maximumReceivedMessageSize = $0
    },
    .integer("limits.sentMessageBytes", 0...(.max)) { $1.settings.client.limits.maximumSentMessageSize = $0 },
  ]

  private static let connections: [Setting] = [
    .choice(
      "http.version",
      ["automatic": NIOHTTPClient.Configuration.HTTPVersion.automatic, "1.1": .http1Only, "2": .http2Only]
    ) { $1.settings.transport.version = $0 },
    .integer("connections.http1", 1...(.max)) {
      $1.settings.transport.limits.http1ConnectionsPerAddress = $0
    },
    .integer("connections.http2", 1...(.max)) {
      $1.settings.transport.limits.http2ConnectionsPerAddress = $0
    },
    .integer("connections.waitingCalls", 0...(.max)) { $1.settings.transport.limits.waitingCalls = $0 },
    .duration("timeouts.connect", atLeast: .milliseconds(1)) { $1.settings.transport.timeouts.connect = $0 },
    .duration("timeouts.idle", atLeast: .milliseconds(1)) { $1.settings.transport.timeouts.idle = $0 },
    .optionalDuration("timeouts.unacknowledged", atLeast: .milliseconds(1)) {
      $1.settings.transport.timeouts.unacknowledged = $0
    },
    .duration("keepalive.interval", atLeast: HTTP2Configuration.Keepalive.shortestInterval) {
      $1.keepalive.interval = $0
    },
    .duration("keepalive.timeout", atLeast: .milliseconds(1)) { $1.keepalive.timeout = $0 },
    .flag("keepalive.withoutCalls") { $1.keepalive.pingsWithoutStreams = $0 },
    .integer("eventLoops", 1...1024) { $1.settings.transport.eventLoops = $0 },
    .flag("proxy.fromEnvironment") { $1.settings.transport.proxy = $0 ? .environment : .off },
    .text(
      "proxy.url",
      "http://host:port or socks5://host:port, perhaps with user and password",
      isSecret: true
    ) {
      (url, draft) throws(Refusal) in
      do throws(ProxyError) {
        draft.settings.transport.proxy = .proxy(try Proxy(url))
      } catch {
        throw Refusal()
      }
    },
  ]

  private static let security: [Setting] = [
    .text("tls.trustRoots", "the path of a PEM file") { $1.settings.transport.tls.trustRoots = .pemFile($0) },
    .text("tls.certificateChain", "the path of a PEM file") { $1.certificateChain = $0 },
    .text("tls.privateKey", "the path of a PEM file") { $1.privateKey = $0 },
    .text("tls.serverName", "a name or an IP address") { $1.settings.transport.tls.serverName = $0 },
    .choice(
      "tls.minimumVersion",
      ["1.2": NIOHTTPClient.Configuration.TLS.Version.tls12, "1.3": .tls13]
    ) { $1.settings.transport.tls.minimumVersion = $0 },
    .duration("tls.fileCheckInterval") { $1.settings.transport.tls.fileCheckInterval = $0 },
  ]

  private static let fleet: [Setting] = [
    .choice(
      "balancing.policy",
      [
        "pick_first": BalancingPolicy.pickFirst, "round_robin": .roundRobin, "least_request": .leastRequest(),
        "weighted_round_robin": .weightedRoundRobin(), "ring_hash": .ringHash(),
      ]
    ) { $1.settings.transport.channel.balancing = $0 },
    .flag("balancing.detectsOutliers") { $1.detectsOutliers = $0 },
    .text("health.service", "the name of a service, or * for the whole server") {
      $1.settings.transport.channel.healthCheckedService = $0 == "*" ? "" : $0
    },
    .text("serviceConfig", "gRPC's service config as JSON") { (json, draft) throws(Refusal) in
      do throws(ServiceConfigError) {
        draft.settings.transport.channel.serviceConfig = try ServiceConfig(json: json)
      } catch {
        // What is wrong there may have values in it.
        throw Refusal(reason: error.path.isEmpty ? nil : "look at \(error.path)")
      }
    },
    .duration("channel.idleTimeout", atLeast: .milliseconds(1)) {
      $1.settings.transport.channel.idleTimeout = $0
    },
    .optionalDuration("channel.maximumConnectionAge", atLeast: .seconds(1)) {
      $1.settings.transport.channel.maximumConnectionAge = $0
    },
    .text("channel.zone", "the name of the zone where this client runs") {
      $1.settings.transport.channel.zone = $0
    },
  ]

  /// The compressions that are there.
  private static let pools: [(name: String, value: any CompressionPool)] = {
    var pools: [any CompressionPool] = [GzipCompressionPool(), DeflateCompressionPool()]
    #if Brotli
    pools.append(BrotliCompressionPool())
    #endif
    #if Zstd
    pools.append(ZstdCompressionPool())
    #endif
    #if Snappy
    pools.append(SnappyCompressionPool())
    #endif
    return pools.map { ($0.name, $0) }
  }()

  private static let poolNames = pools.map(\.name).joined(separator: ", ")
}
