import Connect
import ConnectNIO
import LoopbackServer
import NIOCore
import TestSupport
import XCTest

/// A loopback server and a client of it over sockets, one after the other over HTTP/1.1 and HTTP/2, and with gRPC.
enum SocketTest {
  static let settings = [
    WireSetting(.connect, over: .http1), WireSetting(.connect, over: .http2),
    WireSetting(.grpc, over: .http2),
  ]

  static func run(
    over settings: [WireSetting] = Self.settings,
    _ interceptors: [InterceptorFactory],
    _ body: (LoopbackServer, ProtocolClient, WireSetting) async throws -> Void
  ) async throws {
    for setting in settings {
      let server = try await LoopbackServer.start()
      let httpClient = NIOHTTPClient(
        configuration: .init(version: setting.version == .http1 ? .http1Only : .http2Only)
      )
      let client = ProtocolClient(
        httpClient: httpClient,
        config: ProtocolClientConfig(
          host: server.url,
          networkProtocol: setting.networkProtocol,
          interceptors: interceptors,
          timeout: .seconds(60)
        )
      )
      do {
        try await body(server, client, setting)
        await httpClient.shutdown()
        await server.stop()
      } catch {
        await httpClient.shutdown(within: .zero)
        await server.stop()
        throw error
      }
    }
  }
}

extension LoopbackServer {
  /// Answers `failures` requests to a method with HTTP status 503, and the next ones with a whole response of the
  /// protocol: for streams and gRPC the request's body, which is one envelope, and an end.
  func failAtFirst(_ path: String, failures: Int, headers: HeaderFields = [:]) {
    self.onRaw(path) { request, responder in
      var body = try await request.body()
      guard request.attempt >= failures else {
        return try await responder.respond(status: 503, headers: headers, text: "later")
      }
      let contentType = request.record.headers.first("content-type") ?? ""
      let responseHeaders: HeaderFields = ["content-type": contentType]
      if contentType.hasPrefix("application/grpc") {
        return try await responder.respond(
          headers: responseHeaders,
          body: body,
          trailers: ["grpc-status": "0"]
        )
      }
      if contentType.hasPrefix("application/connect+") {
        body.writeBytes([2, 0, 0, 0, 2])
        body.writeString("{}")
      }
      try await responder.respond(headers: responseHeaders, body: body)
    }
  }
}
