internal import ConformanceMessages
internal import Foundation

/// How a case connects to the server.
struct CaseSetting: Hashable, CustomStringConvertible {
  enum Security: String, CaseIterable {
    case cleartext, tls, mutual
  }

  var version = Connectrpc_Conformance_V1_HTTPVersion.httpVersion2
  var networkProtocol = Connectrpc_Conformance_V1_Protocol.connect
  var codec = Connectrpc_Conformance_V1_Codec.proto
  var compression = Connectrpc_Conformance_V1_Compression.identity
  var security = Security.cleartext
  /// Whether the server's TLS offers only `version`, as the suite's servers do. Else it offers both versions.
  var offersOnlyVersion = false

  var description: String {
    [
      "\(self.networkProtocol)", Self.names[self.version] ?? "?",
      self.security.rawValue, "\(self.codec)", "\(self.compression)",
    ].joined(separator: " ")
  }

  private static let names: [Connectrpc_Conformance_V1_HTTPVersion: String] = [
    .httpVersion1: "HTTP/1.1", .httpVersion2: "HTTP/2", .httpVersion3: "HTTP/3",
  ]

  /// All settings that both the server and this build of the client support.
  static var all: [CaseSetting] {
    var settings: [CaseSetting] = []
    for networkProtocol in Self.protocols {
      for version in [Connectrpc_Conformance_V1_HTTPVersion.httpVersion1, .httpVersion2]
      where networkProtocol != .grpc || version == .httpVersion2 {
        for security in Security.allCases {
          for codec in [Connectrpc_Conformance_V1_Codec.proto, .json] {
            for compression in Self.compressions {
              settings.append(
                CaseSetting(
                  version: version,
                  networkProtocol: networkProtocol,
                  codec: codec,
                  compression: compression,
                  security: security
                )
              )
            }
          }
        }
      }
    }
    return settings
  }

  /// Every protocol over every version of HTTP, in cleartext with protobuf and without compression.
  static var simple: [CaseSetting] {
    self.all.filter { $0.security == .cleartext && $0.codec == .proto && $0.compression == .identity }
  }

  /// Every protocol over every version of HTTP and every kind of TLS, with servers that offer only this version.
  static var offered: [CaseSetting] {
    self.all.filter { $0.security != .cleartext && $0.codec == .proto && $0.compression == .identity }.map {
      var setting = $0
      setting.offersOnlyVersion = true
      return setting
    }
  }

  /// HTTP/3, served by Caddy in front of the server.
  static var http3: [CaseSetting] {
    self.all.filter { $0.security != .cleartext && $0.version == .httpVersion2 }.map {
      var setting = $0
      setting.version = .httpVersion3
      return setting
    }
  }

  static let protocols: [Connectrpc_Conformance_V1_Protocol] = [.connect, .grpc, .grpcWeb]
  /// The compressions of this build.
  static var compressions: [Connectrpc_Conformance_V1_Compression] {
    var compressions: [Connectrpc_Conformance_V1_Compression] = [.identity, .gzip, .deflate]
    #if Brotli
    compressions.append(.br)
    #endif
    #if Zstd
    compressions.append(.zstd)
    #endif
    #if Snappy
    compressions.append(.snappy)
    #endif
    return compressions
  }

  /// A request with this setting, without a call.
  func request(_ server: ConformanceServer) -> CompatRequest {
    var request = CompatRequest()
    request.httpVersion = self.version
    request.protocol = self.networkProtocol
    request.codec = self.codec
    request.compression = self.compression
    request.host = "127.0.0.1"
    request.service = "connectrpc.conformance.v1.ConformanceService"
    switch self.security {
    case .cleartext:
      request.port = UInt32(server.httpPort)
    case .tls:
      request.port = UInt32(self.version == .httpVersion3 ? server.h3Port : self.port(of: server.httpsPorts))
      request.serverTlsCert = Data(server.certificate.utf8)
    case .mutual:
      request.port = UInt32(
        self.version == .httpVersion3 ? server.h3MutualPort : self.port(of: server.mutualPorts)
      )
      request.serverTlsCert = Data(server.certificate.utf8)
      request.clientTlsCreds.cert = Data(server.clientCertificate.utf8)
      request.clientTlsCreds.key = Data(server.clientKey.utf8)
    }
    return request
  }

  private func port(of ports: ConformanceServer.Ports) -> Int {
    guard self.offersOnlyVersion else { return ports.both }
    return self.version == .httpVersion1 ? ports.http1 : ports.http2
  }
}
