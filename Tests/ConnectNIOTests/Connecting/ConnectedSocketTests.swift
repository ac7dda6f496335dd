import Connect
import ConnectChannels
import Foundation
import Glibc
import LoopbackServer
import NIOCore
import NIOPosix
import XCTest

@testable import ConnectNIO

/// Sockets that are connected already.
final class ConnectedSocketTests: XCTestCase {
  private typealias Configuration = NIOHTTPClient.Configuration

  private func pair(_ type: __socket_type = SOCK_STREAM) -> (CInt, CInt) {
    var descriptors: [CInt] = [-1, -1]
    XCTAssertEqual(socketpair(AF_UNIX, CInt(type.rawValue), 0, &descriptors), 0)
    return (descriptors[0], descriptors[1])
  }

  /// A connection to a port of this machine.
  private func connected(to port: Int) throws -> ConnectedSocket {
    let descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(UInt16(port).bigEndian)
    address.sin_addr.s_addr = in_addr_t(UInt32(0x7f00_0001).bigEndian)
    let result = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    XCTAssertEqual(result, 0)
    return try ConnectedSocket(descriptor: descriptor)
  }

  func testOneConnection() async throws {
    let (own, other) = self.pair()
    let server = try await RawServer.serve(other) { connection in
      while let request = connection.takeRequest() { connection.respond(request.head) }
    }
    let socket = try ConnectedSocket(descriptor: own)
    let client = try TestClient(
      try Origin("http://api.example"),
      Configuration(version: .http1Only, connectedSocket: socket)
    )
    // One after the other, and at the same time: there is one connection.
    for _ in 0..<2 {
      let call = client.call().start()
      let head = try await call.response().text
      XCTAssertTrue(head.contains("host: api.example\r\n"), head)
      let address = try await call.connectionInfo()?.remoteAddress
      XCTAssertNil(address)
    }
    let calls = (0..<5).map { _ in client.call().start() }
    for call in calls {
      let status = try await call.response().head.status
      XCTAssertEqual(status, 200)
    }
    await client.shutdown()
    // The client has closed its end.
    try await server.closeFuture.get()
  }

  func testWhenTheConnectionIsGone() async throws {
    let (own, other) = self.pair()
    let server = try await RawServer.serve(other) { connection in
      while connection.takeRequest() != nil { connection.respond(fields: "connection: close\r\n") }
    }
    let client = try TestClient(
      try Origin("http://api.example"),
      Configuration(
        version: .http1Only,
        channel: .init(backoff: .quick),
        connectedSocket: try ConnectedSocket(descriptor: own)
      )
    )
    let status = try await client.call().start().response().head.status
    XCTAssertEqual(status, 200)
    try await server.closeFuture.get()
    for _ in 0..<2 {
      let failure = try await client.call().start().failure()
      XCTAssertEqual(failure.error.code, .unavailable)
      let message = failure.error.message ?? ""
      XCTAssertTrue(message.contains("a connected socket cannot be connected again"), message)
      XCTAssertTrue(message.contains("make a new client with a new socket"), message)
    }
    // A call that waits for a connection would wait for ever.
    let waiting = await ProtocolClient(
      httpClient: client.client,
      config: ProtocolClientConfig(host: "http://api.example")
    ).unary(TestMethods.echo, .init(), options: CallOptions(timeout: .seconds(30), waitForReady: true))
    XCTAssertEqual(waiting.code, .unavailable)
    XCTAssertTrue(
      waiting.error?.message?.contains("cannot be connected again") == true,
      "\(String(describing: waiting.error))"
    )
    await client.shutdown()
  }

  /// Two clients cannot share it, nor can two origins.
  func testItServesOneConnectionOnly() async throws {
    let (own, other) = self.pair()
    let server = try await RawServer.serve(other) { connection in
      while connection.takeRequest() != nil { connection.respond() }
    }
    let configuration = Configuration(
      version: .http1Only,
      connectedSocket: try ConnectedSocket(descriptor: own)
    )
    let first = try TestClient(try Origin("http://api.example"), configuration)
    let text = try await first.call().start().response().text
    XCTAssertEqual(text, "pong")
    let second = try TestClient(try Origin("http://api.example"), configuration)
    let failure = try await second.call().start().failure()
    XCTAssertTrue(failure.error.message?.contains("cannot be connected again") == true, "\(failure.error)")
    await second.shutdown()
    // The first client's connection is its own.
    let again = try await first.call().start().response().text
    XCTAssertEqual(again, "pong")
    await first.shutdown()
    try await server.closeFuture.get()
  }

  /// In cleartext it is HTTP/2, unless the configuration says otherwise: so a call that is cancelled closes no connection.
  func testCancelledCalls() async throws {
    let server = try await LoopbackServer.start()
    server.onRaw("/held") { _, _ in try await Task.sleep(for: .seconds(60)) }
    server.onRaw("/test") { request, responder in try await responder.respond(body: try await request.body())
    }
    let client = try TestClient(
      try Origin("http://api.example"),
      Configuration(connectedSocket: try self.connected(to: server.port))
    )
    let held = client.call().start(.post, "/held")
    _ = try await server.request(to: "/held")
    held.cancel()
    let call = client.call().start()
    let text = try await call.response().text
    XCTAssertEqual(text, "ping")
    let info = try await call.connectionInfo()
    XCTAssertEqual(info?.version, .http2)
    XCTAssertEqual(info?.isReused, true)
    await client.shutdown()
    await server.stop()
  }

  func testVersions() throws {
    let (own, other) = self.pair()
    defer { close(other) }
    let socket = try ConnectedSocket(descriptor: own)
    for version in [Configuration.HTTPVersion.automatic, .http1Only, .http2Only] {
      let configuration = Configuration(version: version, connectedSocket: socket)
      XCTAssertEqual(configuration.version(for: .https), version)
      XCTAssertEqual(configuration.version(for: .http), version == .automatic ? .http2Only : version)
      XCTAssertEqual(Configuration(version: version).version(for: .http), version)
    }
  }

  func testTLSAndHTTP2OverIt() async throws {
    let certificates = try await TestCertificates.make()
    let server = try await LoopbackServer.start(.tls(certificates))
    server.onRaw("/test") { request, responder in
      let body = try await request.body()
      try await responder.respond(body: body)
    }
    let tls = Configuration.TLS(trustRoots: .pemBytes(Array(certificates.authorityPEM.utf8)))
    let client = try TestClient(
      Origin(scheme: .https, host: "localhost", port: 443),
      Configuration(tls: tls, connectedSocket: try self.connected(to: server.port))
    )
    let call = client.call().start()
    let text = try await call.response().text
    XCTAssertEqual(text, "ping")
    let info = try await call.connectionInfo()
    XCTAssertEqual(info?.version, .http2)
    XCTAssertEqual(info?.remoteAddress, "127.0.0.1:\(server.port)")
    XCTAssertNotNil(info?.setup?.tls)
    await client.shutdown()

    // The certificate has to name the origin's host.
    let wrong = try TestClient(
      Origin(scheme: .https, host: "other.example", port: 443),
      Configuration(tls: tls, connectedSocket: try self.connected(to: server.port))
    )
    let failure = try await wrong.call().start().failure()
    XCTAssertTrue(failure.error.message?.contains("other.example") == true, "\(failure.error)")
    await wrong.shutdown()
    await server.stop()
  }

  /// What idles is kept, since it cannot be opened again.
  func testLimits() throws {
    let (own, other) = self.pair()
    defer { close(other) }
    let configuration = Configuration(
      timeouts: .init(idle: .zero),
      channel: .init(idleTimeout: .zero, maximumConnectionAge: .seconds(1)),
      proxy: .environment,
      connectedSocket: try ConnectedSocket(descriptor: own),
      eventLoops: 4
    ).fittedToConnectedSocket
    XCTAssertEqual(configuration.eventLoops, 1)
    XCTAssertEqual(configuration.limits.http1ConnectionsPerAddress, 1)
    XCTAssertEqual(configuration.limits.http2ConnectionsPerAddress, 1)
    XCTAssertEqual(configuration.timeouts.idle, .seconds(Int64.max))
    XCTAssertEqual(configuration.channel.idleTimeout, .seconds(Int64.max))
    XCTAssertNil(configuration.channel.maximumConnectionAge)
    XCTAssertEqual(configuration.proxy, .off)
  }

  // MARK: Ownership

  private func hasEnded(_ descriptor: CInt) -> Bool {
    var byte: UInt8 = 0
    return recv(descriptor, &byte, 1, Int32(MSG_DONTWAIT)) == 0
  }

  func testUnusedSocketsAreClosed() async throws {
    let (own, other) = self.pair()
    defer { close(other) }
    let socket = try ConnectedSocket(descriptor: own)
    let client = NIOHTTPClient(configuration: Configuration(connectedSocket: socket))
    XCTAssertFalse(self.hasEnded(other))
    await client.shutdown()
    XCTAssertTrue(self.hasEnded(other))
    await client.shutdown()

    let (dropped, last) = self.pair()
    defer { close(last) }
    _ = try ConnectedSocket(descriptor: dropped)
    XCTAssertTrue(self.hasEnded(last))
  }

  /// An attempt that was given up leaves the socket for another one.
  func testAttemptsThatAreGivenUp() async throws {
    let (own, other) = self.pair()
    defer { close(other) }
    let socket = try ConnectedSocket(descriptor: own)
    let dialer = Dialer(eventLoop: MultiThreadedEventLoopGroup.singleton.next(), connectedSocket: socket)
    let attempt = try dialer.dial(
      socket.peer,
      timeout: .seconds(5),
      readSize: 2048,
      isWanted: { false }
    ) { _ in }
    do {
      _ = try await attempt.get()
      XCTFail("the socket was taken")
    } catch {}
    let descriptor = try socket.take()
    XCTAssertEqual(descriptor, own)
    close(descriptor)
  }

  func testProgramsDoNotInheritIt() throws {
    let (own, other) = self.pair()
    defer { close(other) }
    XCTAssertEqual(fcntl(own, F_GETFD) & FD_CLOEXEC, 0)
    let socket = try ConnectedSocket(descriptor: own)
    XCTAssertEqual(fcntl(own, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC)
    socket.close()
  }

  func testDescriptorsThatAreRefused() throws {
    let file = open("/dev/null", O_RDONLY)
    let unconnected = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
    let (datagram, other) = self.pair(SOCK_DGRAM)
    let descriptors = [file, unconnected, datagram, other]
    defer { for descriptor in descriptors { close(descriptor) } }
    for (descriptor, problem) in [
      (-1, "is not open"), (file, "is no socket"), (datagram, "make one of the type SOCK_STREAM"),
      (unconnected, "is not connected; connect it first"),
    ] {
      XCTAssertThrowsError(try ConnectedSocket(descriptor: descriptor)) { error in
        let error = error as? ConnectError
        XCTAssertEqual(error?.code, .invalidArgument)
        XCTAssertTrue(error?.message?.contains(problem) == true, "\(String(describing: error))")
      }
    }
    // They are still the caller's.
    for descriptor in descriptors { XCTAssertGreaterThanOrEqual(fcntl(descriptor, F_GETFD), 0) }
  }

  func testTheOtherEnd() throws {
    let (own, other) = self.pair()
    defer { close(other) }
    XCTAssertEqual(try ConnectedSocket(descriptor: own).peer, .unix(path: "(connected socket)"))
  }
}
