import ArgumentParser
import Connect
import ConnectChannels
import ConnectHTTP3
import ConnectNIO
import Foundation
import NIOCore

/// How to reach a server and how to speak to it.
struct ServerOptions: ParsableArguments {
  enum WireProtocol: String, ExpressibleByArgument, CaseIterable {
    case auto, connect, grpc
    case grpcWeb = "grpc-web"
  }

  enum HTTPVersion: String, ExpressibleByArgument, CaseIterable {
    case http1 = "1"
    case http2 = "2"
    case http3 = "3"
  }

  @Option(
    name: [.customLong("protocol"), .customShort("p")],
    help: "The protocol; auto finds the first that gets through."
  )
  var wireProtocol = WireProtocol.auto

  @Option(
    name: .customLong("http"),
    help: "The version of HTTP; without it, what server and protocol agree on."
  )
  var httpVersion: HTTPVersion?

  @Option(
    name: [.customShort("H"), .customLong("header")],
    help:
      "A header, as NAME:VALUE; may be given again. Blanks around both do not count. The value of a -bin header is base64."
  )
  var headers: [String] = []

  @Option(
    help: ArgumentHelp(
      "The host that the server is told in place of that of the URL (:authority, Host), as HOST or HOST:PORT.",
      valueName: "host"
    )
  )
  var authority: String?

  @Option(help: "How long the call may take, such as 500ms, 3s or 2m.")
  var timeout: TimeSpan?

  @Option(help: "How long connecting may take.")
  var connectTimeout: TimeSpan?

  @Option(help: ArgumentHelp("Trust the certificates of this PEM file, and no others.", valueName: "file"))
  var cacert: String?

  @Option(help: ArgumentHelp("The client's certificate chain, in PEM.", valueName: "file"))
  var cert: String?

  @Option(help: ArgumentHelp("The private key of --cert, in PEM.", valueName: "file"))
  var key: String?

  @Option(help: ArgumentHelp("The name that the server's certificate must have.", valueName: "name"))
  var servername: String?

  @Flag(
    name: [.customShort("k"), .customLong("insecure")],
    help: "Accept any certificate: anybody in between can read and change everything."
  )
  var isInsecure = false

  @Option(
    help: ArgumentHelp(
      "A proxy, such as http://proxy:3128 or socks5://proxy:1080; 'off' for none. Without it, the environment decides.",
      valueName: "url"
    )
  )
  var proxy: String?

  @Option(
    help: ArgumentHelp(
      "The addresses of the name in the URL, in place of asking: NAME=ADDRESS,ADDRESS; may be given again. Addresses without a port have that of the URL.",
      valueName: "name=addresses"
    )
  )
  var resolve: [String] = []

  @Option(
    name: .customLong("xds"),
    help: ArgumentHelp(
      "Where a control plane says that calls go, in place of the name in the URL: xds:///NAME. The bootstrap is that of GRPC_XDS_BOOTSTRAP or GRPC_XDS_BOOTSTRAP_CONFIG.",
      valueName: "target"
    )
  )
  var xdsTarget: String?

  // MARK: The client

  /// - Parameter needsDuplex: Whether requests and responses overlap, which HTTP/1.1 does not allow.
  func httpConfiguration(for host: String, needsDuplex: Bool = false) throws -> NIOHTTPClient.Configuration {
    var configuration = NIOHTTPClient.Configuration(proxy: .environment)
    switch self.httpVersion {
    case .http1: configuration.version = .http1Only
    case .http2: configuration.version = .http2Only
    case .http3:
      guard host.hasPrefix("https:") else { throw Failure.usage("HTTP/3 needs https://") }
      configuration.http3 = .alone
    case nil: configuration.version = needsDuplex ? .http2Only : .automatic
    }
    if let limit = self.connectTimeout { configuration.timeouts.connect = limit.duration }
    configuration.tls = try self.tls()
    if let proxy = self.proxy { configuration.proxy = try Self.selection(proxy) }
    if let resolver = try self.resolver(for: host) { configuration.channel.resolver = resolver }
    if let target = self.xdsTarget?.withoutBlanks { try configuration.resolve(xdsTarget: target) }
    return configuration
  }

  private func tls() throws -> NIOHTTPClient.Configuration.TLS {
    var tls = NIOHTTPClient.Configuration.TLS()
    if let file = self.cacert { tls.trustRoots = .pemFile(file) }
    switch (self.cert, self.key) {
    case (nil, nil): break
    case (let cert?, let key?): tls.clientCertificate = .pemFiles(chain: cert, privateKey: key)
    case (_?, nil): throw Failure.usage("--cert needs --key")
    case (nil, _?): throw Failure.usage("--key needs --cert")
    }
    tls.serverName = self.servername?.withoutBlanks
    if self.isInsecure { tls.certificateVerification = .none }
    return tls
  }

  private static func selection(_ text: String) throws -> NIOHTTPClient.Configuration.ProxySelection {
    let text = text.withoutBlanks
    guard text != "off" else { return .off }
    do {
      return .proxy(try Proxy(text))
    } catch {
      throw Failure.usage("--proxy \(text): \(error)")
    }
  }

  private func resolver(for host: String) throws -> (any NameResolver)? {
    try self.addresses(of: ServerName(host: host)).map { StaticResolver($0.map { Endpoint($0) }) }
  }

  /// The addresses that --resolve gives for a name; nil for none. A name that no rule is for is said once.
  func addresses(of name: ServerName) throws -> [EndpointAddress]? {
    let rules = try self.resolve.map { try ResolveRule($0, port: name.port) }
    if let rule = rules.first(where: { $0.applies(to: name) }) { return rule.addresses }
    if !rules.isEmpty {
      Console.note("--resolve has no effect: no rule is for \(name.name), the name in the URL")
    }
    return nil
  }

  /// Whether connections go through a proxy.
  func usesProxy(to name: ServerName) throws -> Bool {
    switch self.proxy?.withoutBlanks {
    case "off"?: return false
    case _?: return true
    case nil:
      do {
        let settings = try ProxySettings.fromEnvironment(ProcessInfo.processInfo.environment)
        return settings.proxy(host: name.name, port: name.port) != nil
      } catch {
        throw Failure.usage(error.message)
      }
    }
  }

  func clientConfig(for host: String, codec: any Codec = ProtoCodec()) -> ProtocolClientConfig {
    let networkProtocol: NetworkProtocol =
      switch self.wireProtocol {
      case .auto: .automatic()
      case .connect: .connect
      case .grpc: .grpc
      case .grpcWeb: .grpcWeb
      }
    return ProtocolClientConfig(
      host: host,
      networkProtocol: networkProtocol,
      codec: codec,
      timeout: self.timeout?.duration,
      limits: .init(maximumReceivedMessageSize: 256 << 20)
    )
  }

  /// The options of each call: what the server is told beside the message.
  func callOptions() throws -> CallOptions {
    CallOptions(headers: try self.requestHeaders(), authority: try self.callAuthority())
  }

  private func callAuthority() throws -> String? {
    guard let text = self.authority?.withoutBlanks else { return nil }
    do {
      _ = try Authority(ofCall: text)
    } catch {
      throw Failure.usage("--authority: \(error.message ?? "no host")")
    }
    return text
  }

  func requestHeaders() throws -> Headers {
    var headers = Headers()
    for text in self.headers {
      guard let colon = text.firstIndex(of: ":"), colon > text.startIndex else {
        throw Failure.usage("the header '\(text)' is not NAME:VALUE")
      }
      let name = text[..<colon].withoutBlanks.lowercased()
      guard name.utf8.allSatisfy(Self.isInToken) else {
        throw Failure.usage("the header name '\(name)' has a character that must not be in a field name")
      }
      let value = text[text.index(after: colon)...].withoutBlanks
      guard !value.utf8.contains(where: { ($0 < 0x20 && $0 != 0x09) || $0 == 0x7f }) else {
        throw Failure.usage("the value of the header '\(name)' has a control character")
      }
      headers.add(name: name, value: value)
      if name.hasSuffix("-bin") { try Failure.local { _ = try headers.binaryValues(name) } }
    }
    return headers
  }

  /// The characters of a token (RFC 9110, section 5.6.2).
  private static func isInToken(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
    default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
  }
}

/// The name of a host, and its port.
struct ServerName {
  var name: String
  var port: Int
}

extension ServerName {
  init(host: String) {
    let isSecure = host.hasPrefix("https:")
    var authority = host.split(separator: "/", omittingEmptySubsequences: true).dropFirst().first ?? ""
    self.port = isSecure ? 443 : 80
    if let colon = authority.lastIndex(of: ":"), !authority.hasSuffix("]"),
      let port = Int(authority[authority.index(after: colon)...])
    {
      self.port = port
      authority = authority[..<colon]
    }
    self.name = String(authority)
  }
}
