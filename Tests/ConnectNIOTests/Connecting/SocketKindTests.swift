import Connect
import ConnectChannels
import Foundation
import Glibc
import XCTest

@testable import ConnectNIO

/// Sockets other than those of TCP and Unix domain sockets with a path.
final class SocketKindTests: XCTestCase {
  /// A socket with a name in the abstract namespace, which a server can listen on.
  private func bound(_ name: String) throws -> CInt {
    let socket = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { bytes in
      UnsafeMutableRawBufferPointer(rebasing: bytes.dropFirst()).copyBytes(from: name.utf8)
    }
    let size = socklen_t(MemoryLayout<sa_family_t>.size + 1 + name.utf8.count)
    let result = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(socket, $0, size) }
    }
    guard result == 0 else { throw CancellationError() }
    return socket
  }

  // MARK: Abstract names

  func testAbstractSocket() async throws {
    for count in [40, 107] {
      let name = "connect.\(UUID())".padding(toLength: count, withPad: "x", startingAt: 0)
      let server = try await RawServer(boundSocket: try self.bound(name)) { connection in
        while let request = connection.takeRequest() {
          connection.respond(request.head.contains("host: localhost\r\n") ? "ok" : request.head)
        }
      }
      let client = try TestClient(try Origin("unix-abstract:\(name)"))
      for _ in 0..<2 {
        let call = client.call().start()
        let text = try await call.response().text
        XCTAssertEqual(text, "ok")
        let address = try await call.connectionInfo()?.remoteAddress
        XCTAssertEqual(address, "unix-abstract:\(name)")
      }
      XCTAssertEqual(server.accepted, 1)
      await client.shutdown()
      await server.close()
    }
  }

  func testNobodyListensAtAnAbstractName() async throws {
    let origin = try Origin("unix-abstract:connect.\(UUID())")
    let client = try TestClient(origin)
    let failure = try await client.call().start().failure()
    XCTAssertEqual(failure.error.code, .unavailable)
    let message = failure.error.message ?? ""
    XCTAssertTrue(message.contains("\(origin)") && message.contains("Connection refused"), message)
    await client.shutdown()
  }

  /// The origin gives the name for TLS, the target says where to connect.
  func testTargetsOfOtherKinds() async throws {
    let name = "connect.\(UUID())"
    let server = try await RawServer(boundSocket: try self.bound(name)) { connection in
      while let request = connection.takeRequest() { connection.respond(request.head) }
    }
    let target = try Target("unix-abstract:\(name)")
    let client = try TestClient(
      try Origin("http://api.example:81"),
      .init(channel: .init(resolver: target.resolver))
    )
    let head = try await client.call().start().response().text
    XCTAssertTrue(head.contains("host: api.example:81\r\n"), head)
    await client.shutdown()
    await server.close()
  }

  func testImpossibleOrigins() async throws {
    let client = NIOHTTPClient()
    for (origin, advice) in [
      (Origin(scheme: .unixAbstract, host: "", port: 0), "1 to 107 bytes"),
      (Origin(scheme: .unixAbstract, host: String(repeating: "x", count: 108), port: 0), "not 108 bytes"),
      (Origin(scheme: .unixAbstract, host: "a\0b", port: 0), "no NUL"),
      (Origin(scheme: .vsock, host: "x", port: 1), "write vsock:CID:PORT"),
      (Origin(scheme: .vsock, host: "3", port: -1), "write vsock:CID:PORT"),
      (Origin(scheme: .vsock, host: "3", port: 1 << 32), "write vsock:CID:PORT"),
    ] {
      XCTAssertThrowsError(try client.endpoint(for: origin, on: nil, requiresHTTP2: false), "\(origin)") {
        let error = $0 as? ConnectError
        XCTAssertEqual(error?.code, .invalidArgument)
        XCTAssertTrue(error?.message?.contains(advice) == true, "\($0)")
      }
    }
    await client.shutdown()
  }

  // MARK: vsock

  /// A listening socket of the machine's own, and its port; nil where the kernel has no loopback for vsock.
  private func vsockServer() throws -> (socket: CInt, port: UInt32)? {
    let server = socket(40, CInt(SOCK_STREAM.rawValue), 0)
    guard server >= 0 else { return nil }
    // `struct sockaddr_vm`: family, nothing, port, CID, nothing. All ones stand for any.
    var address: [UInt32] = [40, .max, .max, 0]
    let size = socklen_t(16)
    func with(_ body: (UnsafeMutablePointer<sockaddr>) -> CInt) -> CInt {
      address.withUnsafeMutableBytes { bytes in
        bytes.withMemoryRebound(to: sockaddr.self) { $0.baseAddress.map(body) ?? -1 }
      }
    }
    var length = size
    guard with({ bind(server, $0, size) }) == 0, listen(server, 8) == 0,
      with({ getsockname(server, $0, &length) }) == 0
    else {
      close(server)
      return nil
    }
    let port = address[1]
    address = [40, port, 1, 0]
    let probe = socket(40, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_NONBLOCK.rawValue), 0)
    defer { close(probe) }
    var poll = pollfd(fd: probe, events: Int16(POLLOUT), revents: 0)
    var error: CInt = 0
    var errorSize = socklen_t(MemoryLayout<CInt>.size)
    let isConnected =
      with { connect(probe, $0, size) } == 0
      || (Glibc.poll(&poll, 1, 200) == 1
        && getsockopt(probe, SOL_SOCKET, SO_ERROR, &error, &errorSize) == 0 && error == 0)
    guard isConnected else {
      close(server)
      return nil
    }
    return (server, port)
  }

  func testVsock() async throws {
    guard let (socket, port) = try self.vsockServer() else {
      throw XCTSkip("the kernel has no loopback for vsock (module vsock_loopback)")
    }
    let server = try await RawServer(boundSocket: socket) { connection in
      while connection.takeRequest() != nil { connection.respond("ok") }
    }
    let client = try TestClient(try Origin("vsock:1:\(port)"))
    let call = client.call().start()
    let text = try await call.response().text
    XCTAssertEqual(text, "ok")
    let address = try await call.connectionInfo()?.remoteAddress
    XCTAssertEqual(address, "vsock:1:\(port)")
    await client.shutdown()
    await server.close()
  }

  /// No machine has this number. What the system says of it depends on the system.
  func testErrorOfVsock() async throws {
    let client = try TestClient(
      try Origin("vsock:4294967290:50051"),
      .init(timeouts: .init(connect: .milliseconds(200)))
    )
    let failure = try await client.call().start().failure()
    XCTAssertEqual(failure.error.code, .unavailable)
    let message = failure.error.message ?? ""
    XCTAssertTrue(message.contains("vsock:4294967290:50051"), message)
    await client.shutdown()
  }
}
