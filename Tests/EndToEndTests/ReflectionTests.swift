internal import Connect
internal import ConnectNIO
internal import ConnectProtobufC
internal import ConnectReflection
internal import LoopbackServer
internal import TestSupport
import XCTest

/// Server reflection of grpcio, in both versions, also behind Envoy.
final class ReflectionTests: XCTestCase {
  private func withClient(
    _ port: String,
    _ networkProtocol: NetworkProtocol = .grpc,
    _ body: (ProtocolClient) async throws -> Void
  ) async throws {
    let server = try await PythonServer.shared(.reflection)
    try await withPlainClient(
      .http2,
      host: "http://127.0.0.1:\(try server.port(port))",
      configure: { $1.networkProtocol = networkProtocol },
      body
    )
  }

  private func expectError(
    _ code: Code,
    _ text: String,
    _ what: String,
    _ body: () async throws -> Void
  ) async {
    do {
      try await body()
      XCTFail("\(what): no error")
    } catch {
      let error = error as? ConnectError
      XCTAssertEqual(error?.code, code, "\(what): \(String(describing: error))")
      XCTAssertTrue(error?.message?.contains(text) ?? false, "\(what): \(String(describing: error))")
    }
  }

  /// Finds the service, and calls a method of it with what was found.
  private func expectService(_ client: ProtocolClient, calls: Bool = true, _ what: String) async throws {
    let reflection = ReflectionClient(client)
    let names = try await reflection.serviceNames()
    XCTAssertTrue(names.contains("connect.test.v1.TestService"), "\(what): \(names)")
    for symbol in [
      "connect.test.v1.TestService", "connect.test.v1.TestService/Echo", "connect.test.v1.Payload",
    ] {
      let files = try await reflection.files(containing: [symbol])
      XCTAssertTrue(files.fileNames.contains("connect/test/v1/test.proto"), "\(what): \(files.fileNames)")
      XCTAssertNoThrow(try files.descriptorPool(), what)
    }
    let files = try await reflection.allFiles()
    let source = try files.source(of: "connect.test.v1.TestService/Echo")
    XCTAssertTrue(source.hasPrefix("rpc Echo(EchoRequest) returns (EchoResponse)"), "\(what): \(source)")
    guard calls else { return }
    let method = try files.descriptorPool().method("/connect.test.v1.TestService/Echo")
    let answer = try await client.unary(method.spec, DynamicMessage(method.input)).get()
    XCTAssertEqual(answer.descriptor.name, "connect.test.v1.EchoResponse", what)
  }

  func testVersions() async throws {
    for port in ["v1alpha", "v1", "both"] {
      try await self.withClient(port) { try await self.expectService($0, port) }
    }
  }

  func testAutomaticProtocol() async throws {
    try await self.withClient("v1alpha", .automatic()) { try await self.expectService($0, "automatic") }
  }

  func testReflectionIsOff() async throws {
    try await self.withClient("off") { client in
      await self.expectError(.unimplemented, "use a descriptor set or proto files", "off") {
        _ = try await ReflectionClient(client).serviceNames()
      }
    }
  }

  func testAServerOfAnotherKind() async throws {
    let server = try await PythonServer.shared(.web)
    try await withPlainClient(.http1, host: "http://127.0.0.1:\(try server.port("http"))") { client in
      do {
        _ = try await ReflectionClient(client).serviceNames()
        XCTFail("no error")
      } catch {
        XCTAssertTrue(error is ConnectError, "\(error)")
      }
    }
  }

  func testUnknownSymbol() async throws {
    for port in ["v1alpha", "v1"] {
      try await self.withClient(port) { client in
        let reflection = ReflectionClient(client)
        await self.expectError(.notFound, "did you mean connect.test.v1.TestService?", port) {
          _ = try await reflection.files(containing: ["connect.test.v1.TestServise"])
        }
        await self.expectError(.notFound, "did you mean connect.test.v1.TestService.Echo", port) {
          _ = try await reflection.files(containing: ["connect.test.v1.TestService/Ecco"])
        }
      }
    }
  }

  /// The server lacks the files of google/protobuf alone, which all clients have.
  func testMissingImports() async throws {
    try await self.withClient("lacking") { try await self.expectService($0, "lacking") }
  }

  // As in requirements.txt: elsewhere there is no Envoy to install.
  #if os(Linux) && (arch(x86_64) || arch(arm64))
  func testGRPCWeb() async throws {
    let server = try await PythonServer.shared(.reflection)
    let addresses = ["127.0.0.1:\(try server.port("v1alpha"))"]
    let envoy = try await PythonServer.start(.envoy, arguments: addresses)
    for networkProtocol in [NetworkProtocol.grpcWeb, .grpcWebText] {
      for version in Version.allCases {
        try await withPlainClient(
          version,
          host: "http://127.0.0.1:\(try envoy.port("http"))",
          configure: { $1.networkProtocol = networkProtocol }
        ) { try await self.expectService($0, "\(networkProtocol), \(version)") }
      }
    }
    await envoy.stop()
  }
  #endif
}
