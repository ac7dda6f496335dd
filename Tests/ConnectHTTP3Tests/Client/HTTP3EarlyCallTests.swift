internal import Connect
internal import ConnectChannels
internal import ConnectHTTP3
internal import ConnectNIO
internal import Foundation
internal import LoopbackServer
internal import NIOCore
internal import SwiftProtobuf
internal import Synchronization
internal import XCTest

/// Calls of a protocol client with early data (0-RTT).
final class HTTP3EarlyCallTests: XCTestCase {
  /// A client of some servers, and what its attempts say of their connections.
  private final class Client: Sendable {
    let httpClient: NIOHTTPClient
    let client: ProtocolClient
    let endpoint: any HTTPEndpoint
    private let infos: Infos

    init(_ configuration: NIOHTTPClient.Configuration, port: Int) throws {
      let infos = Infos()
      self.infos = infos
      self.httpClient = NIOHTTPClient(configuration: configuration)
      self.client = ProtocolClient(
        httpClient: self.httpClient,
        config: ProtocolClientConfig(
          host: "https://localhost:\(port)",
          networkProtocol: .connect,
          codec: ProtoCodec(),
          interceptors: [{ _ in infos }],
          timeout: .seconds(60)
        )
      )
      self.endpoint = try self.httpClient.endpoint(
        for: Origin(scheme: .https, host: "localhost", port: port),
        on: nil,
        requiresHTTP2: false
      )
    }

    @discardableResult
    func get(_ target: String) async -> StreamRecord {
      let request = HTTPStreamRequest(
        method: .get,
        target: target,
        headers: [:],
        body: .complete(ByteBuffer())
      )
      return await StreamRecord.run(request, on: self.endpoint)
    }

    /// The server ends the connection.
    func endConnection() async throws {
      await self.get("/script/end")
      try await self.httpClient.waitUntilIdle()
    }

    /// Has a ticket afterwards, and no connection.
    func getTicket() async throws {
      // The ticket of a connection that breaks before its first response is not kept.
      await self.get("/script/size/1")
      try await self.endConnection()
    }

    func lookUp(_ key: String, headers: Headers = [:]) async -> ResponseMessage<
      Connect_Test_V1_LookupResponse
    > {
      await self.client.unary(
        TestMethods.lookup,
        .with { $0.key = key },
        options: CallOptions(headers: headers)
      )
    }

    /// The connections of the attempts since the last time.
    func takeInfos() -> [HTTPConnectionInfo] { self.infos.all.withLock { $0.take() } ?? [] }

    func shutDown() async { await self.httpClient.shutdown(within: .seconds(5)) }
  }

  private final class Infos: Interceptor, Sendable {
    let all = Mutex<[HTTPConnectionInfo]?>([])

    func unaryFunction() -> UnaryFunction {
      UnaryFunction(responseMetricsFunction: { metrics, proceed in
        if let info = metrics.connection { self.all.withLock { $0 = ($0 ?? []) + [info] } }
        proceed(metrics)
      })
    }
  }

  /// A session that goes on belongs to a server that the program has accepted.
  func testVerifierIsAskedOnceForASession() async throws {
    let server = try await PythonHTTP3Server.shared()
    let asked = Mutex(0)
    var configuration = server.configuration(.alone(HTTP3Configuration(usesEarlyData: true)))
    configuration.tls.serverVerifier = ServerVerifier { _ in
      await Task.yield()
      asked.withLock { $0 += 1 }
    }
    let client = try Client(configuration, port: server.port(.aioquic))
    try await client.getTicket()
    XCTAssertEqual(asked.withLock { $0 }, 1)
    _ = client.takeInfos()
    let response = await client.lookUp("early")
    XCTAssertNil(response.error)
    let info = try XCTUnwrap(client.takeInfos().first)
    XCTAssertTrue(info.isEarlyData)
    XCTAssertEqual(info.tls?.names.dnsNames, ["localhost"], "known of the earlier session")
    XCTAssertEqual(asked.withLock { $0 }, 1)
    await client.shutDown()
  }

  func testCallsTellWhetherTheyWereEarly() async throws {
    let server = try await PythonHTTP3Server.shared()
    let client = try Client(
      server.configuration(.alone(.init(usesEarlyData: true))),
      port: server.port(.aioquic)
    )
    try await client.getTicket()
    for _ in 0..<2 {
      let found = await client.lookUp("it")
      XCTAssertEqual(found.message?.value, "value of it", "\(String(describing: found.error))")
      XCTAssertEqual(client.takeInfos().map(\.isEarlyData), [true])
      try await client.endConnection()
      let echo = await client.client.unary(TestMethods.echo, .with { $0.payload.small = 7 })
      XCTAssertEqual(echo.message?.payload.small, 7, "\(String(describing: echo.error))")
      XCTAssertEqual(client.takeInfos().map(\.isEarlyData), [false])
      try await client.endConnection()
    }
    await client.shutDown()
  }

  /// The call is made again without early data (RFC 8470, section 5.2).
  func testCallThatIsTooEarly() async throws {
    let server = try await PythonHTTP3Server.shared()
    let client = try Client(
      server.configuration(.alone(.init(usesEarlyData: true))),
      port: server.port(.aioquic)
    )
    try await client.getTicket()
    let name = UUID().uuidString
    let found = await client.lookUp("it", headers: ["x-refuse-early": [name]])
    XCTAssertEqual(found.message?.value, "value of it", "\(String(describing: found.error))")
    XCTAssertEqual(client.takeInfos().map(\.isEarlyData), [false], "of the second try")
    let refused = await client.get("/script/refused/\(name)")
    XCTAssertEqual(refused.text, "yes")
    await client.shutDown()
  }

  /// Two of three servers are gone. The client has tickets for both, so that their connections take the call.
  func testServersThatAreGone() async throws {
    let server = try await PythonHTTP3Server.shared()
    var proxies: [UDPProxy] = []
    for _ in 0..<3 { proxies.append(try await UDPProxy(to: server.port(.aioquic))) }
    var configuration = server.configuration(.alone(.init(usesEarlyData: true)))
    configuration.tls.serverName = "localhost"
    configuration.channel.resolver = StaticResolver(proxies.compactMap { Endpoint("127.0.0.1:\($0.port)") })
    let client = try Client(configuration, port: proxies[0].port)
    // A ticket of the second server, then one of the first. On a busy computer, the second may answer before the first.
    for index in [1, 0] {
      try await proxies[0].set { $0.isBlack = index == 1 }
      var address: String?
      for _ in 0..<10 where address != "127.0.0.1:\(proxies[index].port)" {
        let found = await client.lookUp("it")
        XCTAssertEqual(found.message?.value, "value of it", "\(String(describing: found.error))")
        address = client.takeInfos().last?.remoteAddress
        try await client.endConnection()
      }
      XCTAssertEqual(address, "127.0.0.1:\(proxies[index].port)")
    }
    for proxy in proxies.dropLast() { try await proxy.set { $0.isBlack = true } }
    async let echo = client.client.unary(TestMethods.echo, .with { $0.payload.small = 7 })
    let found = await client.lookUp("it")
    XCTAssertEqual(found.message?.value, "value of it", "\(String(describing: found.error))")
    let answer = await echo
    XCTAssertEqual(answer.message?.payload.small, 7, "\(String(describing: answer.error))")
    // What is given up may be reported after what has taken its place.
    let addresses = client.takeInfos().map(\.remoteAddress)
    XCTAssertTrue(addresses.contains("127.0.0.1:\(proxies[2].port)"), "\(addresses)")
    await client.shutDown()
    for proxy in proxies { try await proxy.stop() }
  }
}
