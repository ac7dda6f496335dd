import Connect
import ConnectInterceptors
import ConnectNIO
import ConnectTesting
import LoopbackServer
import SwiftProtobuf
import XCTest

final class ContextInterceptorTests: XCTestCase {
  func testSendsTheContext() async throws {
    let service = ObservedService()
    let client = service.client({ _ in ContextInterceptor() })
    var options = CallOptions()
    options.context.requestID = "r1"
    options.context.baggage["tenant"] = "acme inc"
    try await service.echo("hello", by: client, options: options)
    XCTAssertEqual(service.requestHeaders[0]["x-request-id"], ["r1"])
    XCTAssertEqual(service.requestHeaders[0]["baggage"], ["tenant=acme%20inc"])
    try await service.converse(["a"], by: client, options: options)
    XCTAssertEqual(service.requestHeaders[1]["x-request-id"], ["r1"])
  }

  func testMakesOneIDForAllAttempts() async throws {
    for level in RetryWhenUnavailable.Level.allCases {
      let service = ObservedService()
      let seen = Noted<String?>()
      let client = service.client(
        { _ in ContextInterceptor() },
        { _ in RetryWhenUnavailable(level: level) },
        { _ in SeeRequestID(seen: seen) }
      )
      try await service.echo("flaky", by: client)
      let ids = service.requestHeaders.map { $0["x-request-id"] }
      XCTAssertEqual(ids.count, 2)
      XCTAssertEqual(ids[0], ids[1])
      XCTAssertEqual(ids[0].first?.count, 32)
      XCTAssertEqual(Set(seen.value), [ids[0].first])
      try await service.echo("hello", by: client)
      XCTAssertNotEqual(service.requestHeaders[2]["x-request-id"], ids[0])
    }
  }

  func testLeavesTheCallersHeadersAlone() async throws {
    let service = ObservedService()
    let seen = Noted<String?>()
    let client = service.client({ _ in ContextInterceptor() }, { _ in SeeRequestID(seen: seen) })
    var options = CallOptions(headers: ["X-Request-ID": ["mine"], "baggage": ["a=1"]])
    options.context.baggage["tenant"] = "acme"
    try await service.echo("hello", by: client, options: options)
    XCTAssertEqual(service.requestHeaders[0]["x-request-id"], ["mine"])
    XCTAssertEqual(service.requestHeaders[0]["baggage"], ["a=1"])
    XCTAssertEqual(seen.value, ["mine"])
  }

  func testOptions() async throws {
    let service = ObservedService()
    let options = ContextInterceptor.Options(requestIDHeader: "x-trace", makeRequestID: { "7" })
    try await service.echo("hello", by: service.client({ _ in ContextInterceptor(options: options) }))
    XCTAssertEqual(service.requestHeaders[0]["x-trace"], ["7"])
    let none = ContextInterceptor.Options(requestIDHeader: nil, sendsBaggage: false)
    var call = CallOptions()
    call.context.requestID = "r1"
    call.context.baggage["tenant"] = "acme"
    try await service.echo(
      "hello",
      by: service.client({ _ in ContextInterceptor(options: none) }),
      options: call
    )
    XCTAssertFalse(service.requestHeaders[1].contains("x-request-id"))
    XCTAssertFalse(service.requestHeaders[1].contains("baggage"))
  }

  func testRandomIDsDiffer() {
    let ids = Set((0..<1000).map { _ in ContextInterceptor.Options.randomID() })
    XCTAssertEqual(ids.count, 1000)
    XCTAssertTrue(ids.allSatisfy { $0.utf8.count == 32 })
    for place in 0..<32 {
      let digits = Set(ids.map { Array($0)[place] })
      XCTAssertEqual(String(digits.sorted()), "0123456789abcdef", "place \(place)")
    }
  }

  func testRealServer() async throws {
    let server = try await LoopbackServer.start()
    let httpClient = NIOHTTPClient()
    let client = ProtocolClient(
      httpClient: httpClient,
      config: ProtocolClientConfig(host: server.url, interceptors: [{ _ in ContextInterceptor() }])
    )
    var options = CallOptions()
    options.context.baggage = ["tenant": "acme"]
    try await withThrowingTaskGroup(of: Void.self) { [options] group in
      for _ in 0..<100 {
        group.addTask {
          _ = try await client.unary(TestMethods.echo, Connect_Test_V1_EchoRequest(), options: options).get()
        }
      }
      try await group.waitForAll()
    }
    let requests = server.journal.snapshot.requests
    XCTAssertEqual(Set(requests.map { $0.headers["x-request-id"] }).count, 100)
    XCTAssertTrue(requests.allSatisfy { $0.headers["baggage"] == ["tenant=acme"] })
    await httpClient.shutdown()
    await server.stop()
  }
}

private struct SeeRequestID: Interceptor {
  let seen: Noted<String?>

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(requestFunction: { request, proceed in
      self.seen.add(request.context.requestID)
      proceed(.success(request))
    })
  }
}
