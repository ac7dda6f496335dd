import Connect
import ConnectInterceptors
import ConnectNIO
import ConnectTesting
import LoopbackServer
import NIOCore
import SwiftProtobuf
import TestSupport
import XCTest

/// Cookies of calls over sockets, and of calls in memory.
final class CookieInterceptorTests: XCTestCase {
  private static let unary = ScriptedServer.method(.unary)
  private static let stream = ScriptedServer.method(.serverStream)

  /// A server whose response number n, from 0, sets `cookies(n)`, and is an error if `failures` has n.
  private func makeServer(
    failures: Range<Int> = 0..<0,
    _ cookies: @escaping @Sendable (Int) -> [String]
  ) -> ScriptedServer {
    ScriptedServer { number, context in
      for cookie in cookies(number - 1) { context.responseHeaders.add(name: "set-cookie", value: cookie) }
      try await context.sendHeaders()
      if failures.contains(number - 1) { throw ConnectError.away }
    }
  }

  private func sent(_ server: ScriptedServer) -> [[String]] { server.attempts.map { $0.headers["cookie"] } }

  // MARK: Over sockets

  /// A service that sets a cookie at login, and wants it in all other calls.
  func testLogin() async throws {
    let jar = CookieJar()
    try await SocketTest.run([{ _ in CookieInterceptor(jar) }]) { server, client, setting in
      jar.removeAll()
      self.serve(server, Self.unary.path, isLogin: true)
      self.serve(server, Self.stream.path, isLogin: false)
      let before = try await client.serverStream(Self.stream, .text("x")).results.collected()
      XCTAssertEqual(before.error?.code, .unauthenticated, "\(setting)")
      _ = try await client.unary(Self.unary, .text("me")).get()
      let after = try await client.serverStream(Self.stream, .text("x")).results.collected()
      XCTAssertNil(after.error, "\(setting)")
      XCTAssertEqual(jar.cookies.map(\.name), ["session"], "\(setting)")
      XCTAssertEqual(
        server.requests.map { $0.headers["cookie"] },
        [[], [], ["session=4711"]],
        "\(setting)"
      )
    }
  }

  /// Answers with the request's body. `isLogin` sets a cookie; else it is wanted.
  private func serve(_ server: LoopbackServer, _ path: String, isLogin: Bool) {
    server.onRaw(path) { request, responder in
      let body = try await request.body()
      let contentType = request.record.headers.first("content-type") ?? ""
      guard isLogin || request.record.headers.first("cookie") == "session=4711" else {
        return try await responder.respond(status: 401, text: "who are you?")
      }
      var headers: HeaderFields = ["content-type": contentType]
      if isLogin { headers.add("set-cookie", "session=4711; Path=/; HttpOnly; SameSite=Strict") }
      if contentType.hasPrefix("application/grpc") {
        return try await responder.respond(headers: headers, body: body, trailers: ["grpc-status": "0"])
      }
      var answer = body
      if contentType.hasPrefix("application/connect+") {
        answer.writeBytes([2, 0, 0, 0, 2])
        answer.writeString("{}")
      }
      try await responder.respond(headers: headers, body: answer)
    }
  }

  // MARK: Responses

  func testResponsesThatSetCookies() async throws {
    for networkProtocol in [NetworkProtocol.connect, .grpc, .grpcWeb] {
      for failures in [0..<0, 0..<100] {
        let jar = CookieJar()
        let server = self.makeServer(failures: failures) { ["n=\($0); Path=/", "second=\($0); Path=/"] }
        let client = server.client(over: networkProtocol) { _ in CookieInterceptor(jar) }
        _ = try await server.call(client)
        _ = try await server.stream(client)
        _ = try await server.call(client)
        XCTAssertEqual(
          self.sent(server),
          [[], ["n=0; second=0"], ["n=1; second=1"]],
          "\(networkProtocol), \(failures) failures"
        )
      }
    }
  }

  func testTrailersSetNoCookies() async throws {
    for networkProtocol in [NetworkProtocol.connect, .grpc, .grpcWeb] {
      let jar = CookieJar()
      let server = ScriptedServer { _, context in
        context.responseTrailers.add(name: "set-cookie", value: "a=b; Path=/")
      }
      let client = server.client(over: networkProtocol) { _ in CookieInterceptor(jar) }
      let response = try await server.call(client)
      XCTAssertEqual(response.trailers["set-cookie"], ["a=b; Path=/"], "\(networkProtocol)")
      _ = try await server.stream(client)
      XCTAssertEqual(jar.cookies, [], "\(networkProtocol)")
    }
  }

  func testHugeCookieIsIgnored() async throws {
    let jar = CookieJar()
    let server = self.makeServer { _ in ["a=" + String(repeating: "x", count: 1 << 20), "b=1; Path=/"] }
    let client = server.client { _ in CookieInterceptor(jar) }
    let response = try await server.call(client)
    XCTAssertEqual(response.code, .ok)
    XCTAssertEqual(jar.cookies.map(\.name), ["b"])
  }

  // MARK: Requests

  func testOwnCookiesAreKept() async throws {
    let jar = CookieJar()
    let server = self.makeServer { _ in ["a=jar; Path=/", "b=jar; Path=/"] }
    let client = server.client { _ in CookieInterceptor(jar) }
    for own in [[], ["x=1; y=2"], ["b=mine", "z=3"]] {
      var options = CallOptions()
      options.headers["cookie"] = own
      _ = try await server.call(client, options: options)
    }
    XCTAssertEqual(self.sent(server), [[], ["x=1; y=2; a=jar; b=jar"], ["b=mine; z=3; a=jar"]])
  }

  func testLogsHaveNoCookies() async throws {
    let jar = CookieJar()
    let recorder = CallLogRecorder()
    var options = CallLog.Options(logsHeaders: true)
    options.redactedHeaders = []
    let log = CallLog(logger: recorder.makeLogger(), options: options)
    let server = self.makeServer { _ in ["a=s3cret; Path=/"] }
    let client = server.client({ _ in CookieInterceptor(jar) }, { LoggingInterceptor(log, config: $0) })
    _ = try await server.call(client)
    _ = try await server.call(client)
    XCTAssertEqual(self.sent(server), [[], ["a=s3cret"]])
    XCTAssertTrue(recorder.lines.contains { "\($0)".contains("redacted") })
    XCTAssertEqual(recorder.lines.filter { "\($0)".contains("s3cret") }.count, 0)
  }

  // MARK: Retries

  func testRetriesSendTheNewCookies() async throws {
    for isStream in [false, true] {
      let jar = CookieJar()
      let budget = RetryBudget()
      let server = self.makeServer(failures: 0..<2) { ["n=\($0); Path=/"] }
      let client = server.client(
        { _ in RetryInterceptor(policy: .init(holdsStreamHeaders: true), budget: budget) },
        { _ in CookieInterceptor(jar) }
      )
      if isStream { _ = try await server.stream(client) } else { _ = try await server.call(client) }
      XCTAssertEqual(self.sent(server), [[], ["n=0"], ["n=1"]], "stream: \(isStream)")
    }
  }

  /// An interceptor inside that sends a request again sends it with the present cookies, and once.
  func testRequestThatComesBack() async throws {
    let jar = CookieJar()
    let server = self.makeServer(failures: 1..<3) { ["n=\($0); Path=/"] }
    let client = server.client({ _ in CookieInterceptor(jar) }, { _ in ResendingInterceptor() })
    var options = CallOptions()
    options.headers["cookie"] = ["own=1"]
    _ = try await server.call(client, options: options)
    _ = try await server.call(client, options: options)
    XCTAssertEqual(self.sent(server), [["own=1"], ["own=1; n=0"], ["own=1; n=0"], ["own=1; n=0"]])
  }

  // MARK: Caches

  func testCacheTellsUsersApart() async throws {
    let server = self.makeServer { ["n=\($0); Path=/"] }
    let cache = ResponseCache(clock: server.executor.clock)
    let method = ScriptedServer.method(.unary, .noSideEffects)
    server.transport.onUnary(method) { request, context in
      .with { $0.payload.text = context.requestHeaders.first("cookie") ?? "nobody" }
    }
    @Sendable func client(_ jar: CookieJar) -> ProtocolClient {
      server.client(
        { _ in CookieInterceptor(jar, .requests) },
        { _ in CacheReadInterceptor(cache) },
        { _ in CacheWriteInterceptor(cache) },
        { _ in CookieInterceptor(jar, .responses) }
      )
    }
    let url = RequestURL(origin: try Origin("http://scripted.test"), path: "/")
    let jars = ["ada", "bob"].map { name in
      let jar = CookieJar()
      jar.receive("user=\(name)", from: url)
      return jar
    }
    for _ in 0..<2 {
      for (jar, name) in zip(jars, ["ada", "bob"]) {
        let response = try await server.executor.lettingTimePass {
          try await client(jar).unary(method, .text("x")).get()
        }
        XCTAssertEqual(response.payload.text, "user=\(name)")
      }
    }
  }

  func testRetriesInsideOfACache() async throws {
    let jar = CookieJar()
    let budget = RetryBudget()
    let server = self.makeServer(failures: 0..<2) { ["n=\($0); Path=/"] }
    let cache = ResponseCache(clock: server.executor.clock)
    let client = server.client(
      { _ in CookieInterceptor(jar, .requests) },
      { _ in CacheReadInterceptor(cache) },
      { _ in CacheWriteInterceptor(cache) },
      { _ in RetryInterceptor(policy: .init(), budget: budget) },
      { _ in CookieInterceptor(jar, .responses) }
    )
    _ = try await server.call(client, idempotencyLevel: .noSideEffects)
    XCTAssertEqual(self.sent(server), [[], ["n=0"], ["n=1"]])
    XCTAssertEqual(jar.cookies.map(\.value), ["2"])
  }

  // MARK: Users

  /// A call of the former user brings no cookies for the next one, and its next attempt sends none.
  func testLogoutDuringACall() async throws {
    let jar = CookieJar()
    let budget = RetryBudget()
    let server = ScriptedServer { number, context in
      context.responseHeaders.add(name: "set-cookie", value: "user=former\(number); Path=/")
      try await context.sendHeaders()
      if number == 2 {
        jar.removeAll()
        jar.receive(
          "user=next; Path=/",
          from: RequestURL(origin: try Origin("http://scripted.test"), path: "/")
        )
        throw ConnectError.away
      }
    }
    let client = server.client(
      { _ in RetryInterceptor(policy: .init(), budget: budget) },
      { _ in CookieInterceptor(jar) }
    )
    _ = try await server.call(client)
    _ = try await server.call(client)
    XCTAssertEqual(self.sent(server), [[], ["user=former1"], []])
    XCTAssertEqual(jar.cookies.map(\.value), ["next"])
    _ = try await server.call(client)
    XCTAssertEqual(self.sent(server).last, ["user=next"])
  }
}

/// Makes one more attempt after an error, with the request as it saw it.
private final class ResendingInterceptor: Interceptor {
  private var request: HTTPRequest<ByteBuffer>?
  private var count = 0

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      requestFunction: { request, proceed in
        self.request = request
        proceed(.success(request))
      },
      responseFunction: { response, proceed in
        guard response.error != nil, self.count < 2, let request = self.request else {
          return proceed(response)
        }
        self.count += 1
        proceed.retry(request)
      }
    )
  }
}
