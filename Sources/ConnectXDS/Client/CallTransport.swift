internal import Connect
internal import Logging

/// Makes ADS streams as calls over HTTP transports.
struct CallTransport: DiscoveryTransport {
  /// The largest response of a control plane, in bytes: four times what gRPC takes by default. A larger one ends the stream with
  /// `resource_exhausted`.
  static let maximumResponseSize = 16 * 1024 * 1024

  let transport: XDSClient.Transport
  let logger: Logger

  func open(
    to server: XDSBootstrap.Server,
    onEvent: @escaping @Sendable (DiscoveryEvent) -> Void
  ) -> any DiscoveryCall {
    let client: ProtocolClient
    do {
      let transport = StartObserver(try self.transport(server)) { onEvent(.started) }
      client = ProtocolClient(httpClient: transport, config: try server.clientConfig(logger: self.logger))
    } catch {
      onEvent(.ended(ConnectError(error)))
      return EndedCall()
    }
    // It has no deadline. It does not wait for a server that can be reached either: whether it can is why there are other
    // servers (gRFC A71).
    let stream = client.bidirectionalStream(
      Envoy_Service_Discovery_V3_AggregatedDiscoveryServiceClient.Methods.streamAggregatedResources,
      options: CallOptions(waitForReady: false),
      // Headers, and a response.
      demand: 2
    ) { result in
      switch result {
      case .headers: break
      case .message(let response): onEvent(.response(response))
      case .complete(let code, let error, _):
        onEvent(
          .ended(
            error
              ?? ConnectError(code: .unavailable, message: "the server has ended the ADS stream (\(code))")
          )
        )
      }
    }
    return StreamCall(stream: stream)
  }

  private final class StreamCall: DiscoveryCall {
    private let stream:
      StreamHandle<Envoy_Service_Discovery_V3_DiscoveryRequest, Envoy_Service_Discovery_V3_DiscoveryResponse>

    init(
      stream: StreamHandle<
        Envoy_Service_Discovery_V3_DiscoveryRequest, Envoy_Service_Discovery_V3_DiscoveryResponse
      >
    ) {
      self.stream = stream
    }

    func send(
      _ request: Envoy_Service_Discovery_V3_DiscoveryRequest,
      completion: @escaping @Sendable (Bool) -> Void
    ) {
      self.stream.send(request) { completion($0 == nil) }
    }

    func requestNext() { self.stream.request(1) }

    func cancel() { self.stream.cancel() }
  }

  /// A stream that could not begin.
  private final class EndedCall: DiscoveryCall {
    func send(
      _ request: Envoy_Service_Discovery_V3_DiscoveryRequest,
      completion: @escaping @Sendable (Bool) -> Void
    ) { completion(false) }

    func requestNext() {}
    func cancel() {}
  }
}

extension XDSBootstrap.Server {
  /// How calls to the server are made.
  ///
  /// - Throws: ``ConnectError`` with `invalid_argument` if ``uri`` names no server.
  func clientConfig(logger: Logger) throws(ConnectError) -> ProtocolClientConfig {
    ProtocolClientConfig(
      host: try self.host,
      networkProtocol: .grpc,
      codec: ProtoCodec(),
      limits: .init(maximumReceivedMessageSize: CallTransport.maximumResponseSize),
      logger: logger
    )
  }

  /// The host of a client, such as `https://control.example.com:443`.
  ///
  /// The target may have the schemes of gRPC's names: `dns:`, `ipv4:`, `ipv6:` (one address), `unix:` and `unix-abstract:`. The
  /// port is 443 if there is none, as in gRPC. `http:` and `https:` may stand there, too; the credentials decide
  /// whether there is TLS.
  var host: String {
    get throws(ConnectError) {
      if self.uri.hasPrefix("unix:") || self.uri.hasPrefix("unix-abstract:") { return self.uri }
      var rest = self.uri[...]
      if let scheme = ["dns:", "ipv4:", "ipv6:", "http:", "https:"].first(where: { rest.hasPrefix($0) }) {
        rest = rest.dropFirst(scheme.count)
        if rest.hasPrefix("//") {
          // dns://RESOLVER/NAME: there is no resolver of its own.
          let isURL = scheme == "http:" || scheme == "https:"
          let path = rest.dropFirst(2)
          rest = isURL ? path : path.drop { $0 != "/" }.dropFirst()
        }
      }
      let scheme = self.credentials == .insecure ? "http" : "https"
      let origin = try? Origin("\(scheme)://\(rest)")
      guard let origin, !rest.contains("/"), !rest.isEmpty else {
        throw ConnectError(
          code: .invalidArgument,
          message:
            "the control plane's \"server_uri\" \(self.uri) names no server; write HOST:PORT, or dns:///HOST:PORT"
        )
      }
      // An origin of http has port 80 without one in the text.
      let hasPort = rest.last != "]" && rest.contains(":")
      return hasPort || scheme == "https" ? "\(scheme)://\(rest)" : "\(scheme)://\(origin.authority):443"
    }
  }
}
