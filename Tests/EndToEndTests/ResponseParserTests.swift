internal import Connect
internal import ConnectNIO
internal import LoopbackServer
internal import NIOCore
internal import SwiftProtobuf
import XCTest

/// Response parsers and codecs of one operation, with web servers that know nothing of RPC.
final class ResponseParserTests: XCTestCase {
  private struct Query: Codable, Sendable {
    var city = ""
  }

  private struct Sales: Codable, Sendable, Equatable {
    var units: [String: Int]

    /// Nil unless it is a table of cities and units.
    init?(csv: String) {
      let lines = csv.split(whereSeparator: \.isNewline)
      guard lines.first == "city,units" else { return nil }
      self.units = [:]
      for line in lines.dropFirst() {
        let cells = line.split(separator: ",")
        guard cells.count == 2, let units = Int(cells[1]) else { return nil }
        self.units[String(cells[0])] = units
      }
    }
  }

  private static func method(_ path: String) -> MethodSpec<Query, Sales> {
    MethodSpec(codablePath: path, streamType: .unary, idempotencyLevel: .noSideEffects)
  }

  /// Reads CSV, and makes errors of pages in HTML.
  private static let parser = ResponseParser(for: Sales.self) { response in
    let contentType = response.httpHeaders.first("content-type") ?? ""
    let body = String(buffer: response.message)
    if contentType.hasPrefix("text/csv"), response.httpStatus == 200 {
      guard let sales = Sales(csv: body) else {
        throw ConnectError(code: .dataLoss, message: "not the table")
      }
      return sales
    }
    guard contentType.hasPrefix("text/html"), var error = response.error else { return nil }
    let title = body.firstRange(of: "<title>").flatMap { start in
      body[start.upperBound...].firstRange(of: "</title>").map { body[start.upperBound..<$0.lowerBound] }
    }
    error.message = "the server says: \(title ?? "nothing")"
    throw error
  }

  private func withClient(
    _ url: String,
    _ configure: (inout ProtocolClientConfig) -> Void = { _ in },
    _ body: (ProtocolClient) async throws -> Void
  ) async throws {
    let transport = NIOHTTPClient()
    var config = ProtocolClientConfig(host: url, codec: JSONCodec(), timeout: .seconds(60))
    config.methodFormats = { _ in MethodFormat(responseParser: Self.parser) }
    configure(&config)
    do {
      try await body(ProtocolClient(httpClient: transport, config: config))
      await transport.shutdown()
    } catch {
      await transport.shutdown()
      throw error
    }
  }

  func testAServerThatAnswersCSV() async throws {
    let port = try await PythonServer.shared(.web).port("http")
    try await self.withClient("http://127.0.0.1:\(port)", { $0.unaryGET = .alwaysEnabled }) { client in
      let response = await client.unary(Self.method("/sales/july.csv"), Query())
      XCTAssertEqual(try response.get().units, ["Oslo": 12, "Lima": 30])
      // Without the parser, it is a response with a foreign content type.
      let declined = await client.unary(
        Self.method("/sales/july.csv"),
        Query(),
        options: CallOptions(parser: ResponseParser(for: Sales.self) { _ in nil })
      )
      XCTAssertEqual(declined.code, .unknown)
      XCTAssertEqual(declined.error?.message?.contains("text/csv"), true, "\(declined)")
    }
  }

  func testAServerThatAnswersErrorsAsHTML() async throws {
    let port = try await PythonServer.shared(.web).port("http")
    try await self.withClient("http://127.0.0.1:\(port)") { client in
      // Python's server has no POST.
      let response = await client.unary(Self.method("/sales/july.csv"), Query())
      XCTAssertEqual(response.error?.message, "the server says: Error response", "\(response)")
      XCTAssertEqual(response.error?.httpStatus, 501)
    }
    try await self.withClient("http://127.0.0.1:\(port)", { $0.unaryGET = .alwaysEnabled }) { client in
      let response = await client.unary(Self.method("/sales/june.csv"), Query())
      XCTAssertEqual(response.code, .unimplemented)
      XCTAssertEqual(response.error?.message, "the server says: Error response")
      XCTAssertEqual(response.error?.httpStatus, 404)
    }
  }

  /// nginx, whose server is gone.
  func testAProxyThatAnswersErrorsAsHTML() async throws {
    // No server listens on the port 1.
    let nginx = try await PythonServer.start(.nginx, arguments: ["127.0.0.1:1"])
    for networkProtocol in [NetworkProtocol.grpc, .grpcWeb, .connect] {
      let transport = NIOHTTPClient(configuration: .init(version: .http2Only))
      var config = ProtocolClientConfig(
        host: "http://127.0.0.1:\(try nginx.port("http"))",
        networkProtocol: networkProtocol,
        codec: JSONCodec(),
        timeout: .seconds(60)
      )
      config.methodFormats = { _ in MethodFormat(responseParser: Self.parser) }
      let client = ProtocolClient(httpClient: transport, config: config)
      let response = await client.unary(Self.method("/sales.v1.Sales/Get"), Query())
      XCTAssertEqual(response.code, .unavailable, "\(networkProtocol)")
      // nginx answers gRPC with a status of gRPC, and others with a page.
      if networkProtocol != .grpc {
        XCTAssertEqual(response.error?.message, "the server says: 502 Bad Gateway", "\(networkProtocol)")
      }
      await transport.shutdown()
    }
    await nginx.stop()
  }

  /// The same method in protobuf and in JSON, by one client.
  func testCodecsOfOneMethod() async throws {
    for setting in Setting.all where setting.server == .hypercorn && setting.transport == .http2 {
      let address = try await TestServers.shared.address(of: setting.server, over: setting.transport)
      for networkProtocol in [NetworkProtocol.connect, .grpc, .grpcWeb] {
        let transport = NIOHTTPClient(configuration: .init(version: .http2Only))
        let seen = Recorder<String>()
        let config = ProtocolClientConfig(
          host: address.url,
          networkProtocol: networkProtocol,
          interceptors: [{ _ in ContentTypes(seen: seen) }],
          timeout: .seconds(60)
        )
        let client = ProtocolClient(httpClient: transport, config: config)
        for codec in [ProtoCodec(), JSONCodec()] as [any Codec] {
          let response = await client.unary(
            unaryMethod("/connect.test.v1.TestService/Echo"),
            .with { $0.payload.text = "x" },
            options: CallOptions(codec: codec)
          )
          XCTAssertEqual(response.message?.payload.text, "x", "\(networkProtocol): \(response)")
        }
        XCTAssertEqual(seen.values.map { $0.hasSuffix("json") }, [false, true], "\(seen.values)")
        await transport.shutdown()
      }
      break
    }
  }

  private struct ContentTypes: Interceptor {
    let seen: Recorder<String>

    func callFunction(_ method: MethodInfo) -> CallFunction {
      CallFunction(requestFunction: { self.seen.record($0.contentType) })
    }
  }
}

extension CallOptions {
  fileprivate init(headers: Headers = Headers(), codec: (any Codec)? = nil, parser: ResponseParser? = nil) {
    self.init(headers: headers, timeout: nil)
    self.codec = codec
    self.responseParser = parser
  }
}
