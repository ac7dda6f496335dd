// As in requirements.txt: elsewhere there is no Envoy to install.
#if os(Linux) && (arch(x86_64) || arch(arm64))
internal import Connect
internal import ConnectInterceptors
internal import ConnectNIO
internal import LoopbackServer
internal import SwiftProtobuf
internal import TestSupport
internal import XCTest

/// Envoy keeps a client on one server by a cookie (`stateful_session`), in front of two grpcio servers that say who they are.
final class StatefulSessionTests: XCTestCase {
  private static let settings = [
    WireSetting(.grpc, over: .http2), WireSetting(.grpcWeb, over: .http1),
    WireSetting(.grpcWeb, over: .http2),
    WireSetting(.connect, over: .http1), WireSetting(.connect, over: .http2),
  ]

  /// Makes calls one after the other, with a jar or without.
  private static func call(
    _ count: Int,
    _ port: Int,
    _ setting: WireSetting,
    _ jar: CookieJar?
  ) async throws -> FleetTally {
    try await withPlainClient(
      setting.version ?? .http2,
      host: "http://127.0.0.1:\(port)",
      configure: { _, config in
        config.networkProtocol = setting.networkProtocol
        if let jar { config.interceptors.append { _ in CookieInterceptor(jar) } }
      }
    ) { client in
      var tally = FleetTally()
      for _ in 0..<count { tally.add(await client.unary(TestMethods.echo, EchoRequest())) }
      return tally
    }
  }

  func testJarKeepsAClientOnOneServer() async throws {
    let fleet = try await Fleet.shared()
    let servers = [try await fleet.start("127.0.0.2"), try await fleet.start("127.0.0.3")]
    let envoy = try await PythonServer.start(.envoy, arguments: ["session_cookie=where"] + servers)
    let port = try envoy.port("http")
    for setting in Self.settings {
      let without = try await Self.call(20, port, setting, nil)
      without.expectNoFailures()
      XCTAssertEqual(Set(without.succeeded.keys), Set(servers), "\(setting)")

      let jar = CookieJar()
      let with = try await Self.call(20, port, setting, jar)
      with.expectNoFailures()
      XCTAssertEqual(with.succeeded.count, 1, "\(setting): \(with.succeeded)")
      XCTAssertEqual(with.successCount, 20, "\(setting)")
      XCTAssertEqual(jar.cookies.map(\.name), ["where"], "\(setting)")
      // Over other connections, too.
      let later = try await Self.call(5, port, setting, jar)
      XCTAssertEqual(later.succeeded.keys, with.succeeded.keys, "\(setting)")
      // Another user is balanced on their own.
      let users = try await withThrowingTaskGroup(of: FleetTally.self) { group in
        for _ in 0..<20 { group.addTask { try await Self.call(1, port, setting, CookieJar()) } }
        return try await group.reduce(into: FleetTally()) { $0.add($1) }
      }
      XCTAssertEqual(Set(users.succeeded.keys), Set(servers), "\(setting)")
    }
    await envoy.stop()
    try await fleet.stop(servers)
  }

  /// The server of the session goes away: the balancer chooses another one, and says so with another cookie.
  func testServerThatGoesAway() async throws {
    let fleet = try await Fleet.shared()
    let servers = [try await fleet.start("127.0.0.2"), try await fleet.start("127.0.0.3")]
    let envoy = try await PythonServer.start(.envoy, arguments: ["session_cookie=where"] + servers)
    let port = try envoy.port("http")
    let setting = WireSetting(.grpc, over: .http2)
    let jar = CookieJar()
    let before = try await Self.call(5, port, setting, jar)
    XCTAssertEqual(before.succeeded.count, 1)
    let cookie = jar.cookies.map(\.value)
    try await fleet.stop(Array(before.succeeded.keys))
    let after = try await Self.call(20, port, setting, jar)
    after.expectNoFailures()
    XCTAssertEqual(Set(after.succeeded.keys), Set(servers).subtracting(before.succeeded.keys))
    XCTAssertNotEqual(jar.cookies.map(\.value), cookie)
    await envoy.stop()
    try await fleet.stop(Array(after.succeeded.keys))
  }
}
#endif
