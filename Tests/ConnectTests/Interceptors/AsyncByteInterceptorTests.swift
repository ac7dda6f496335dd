import Connect
import ConnectTesting
import NIOCore
import XCTest

/// Interceptors in their async form that work on bytes.
final class AsyncByteInterceptorTests: XCTestCase {
  @TaskLocal static var trace = "none"

  /// An async interceptor of bytes that is made of closures.
  private struct Bytes: AsyncUnaryByteInterceptor, AsyncStreamByteInterceptor {
    typealias Unary =
      @Sendable (HTTPRequest<ByteBuffer>, MethodInfo, UnaryByteNext) async throws -> HTTPResponse
    typealias Stream =
      @Sendable (StreamRequest<ByteBuffer>, MethodInfo, StreamNext<ByteBuffer, ByteBuffer>) async throws ->
      StreamResponse<ByteBuffer>

    var unary: Unary = { request, _, next in try await next(request) }
    var stream: Stream = { request, _, next in try await next(request) }

    func interceptUnaryBytes(
      _ request: HTTPRequest<ByteBuffer>,
      method: MethodInfo,
      next: UnaryByteNext
    ) async throws -> HTTPResponse {
      try await self.unary(request, method, next)
    }

    func interceptStreamBytes(
      _ request: StreamRequest<ByteBuffer>,
      method: MethodInfo,
      next: StreamNext<ByteBuffer, ByteBuffer>
    ) async throws -> StreamResponse<ByteBuffer> {
      try await self.stream(request, method, next)
    }

    static func unary(_ body: @escaping Unary) -> InterceptorFactory { { _ in Bytes(unary: body) } }
    static func stream(_ body: @escaping Stream) -> InterceptorFactory { { _ in Bytes(stream: body) } }
  }

  func testSeesTheEncodedMessageAndTheHTTPResponseAmongClosures() async {
    let probe = InterceptorProbe()
    let transport = ScriptedTransport { $0.reply("\"answer\"", headers: ["x-from": ["server"]]) }
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        probe.factory("A", levels: [.byte]),
        Bytes.unary { request, method, next in
          var request = request
          XCTAssertEqual(method.path, "/test.Text/Unary")
          XCTAssertEqual(String(buffer: request.message), "\"x\"")
          request.message = ByteBuffer(string: "\"signed x\"")
          request.headers["x-signature"] = ["yes"]
          var response = try await next(request)
          XCTAssertEqual(response.httpStatus, 200)
          XCTAssertEqual(response.headers["x-from"], ["server"])
          response.message = ByteBuffer(string: "\"checked\"")
          return response
        },
        probe.factory("C", levels: [.byte]),
      ]
    )
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(response.message, "checked")
    XCTAssertEqual(transport.streams[0].sentMessage, "\"signed x\"")
    XCTAssertEqual(transport.streams[0].request.headers["x-signature"], ["yes"])
    XCTAssertEqual(
      probe.events.outline,
      ["A byte request", "C byte request", "C byte response ok", "A byte response ok"]
    )
  }

  func testAnswersThrowsAndRetries() async {
    let transport = ScriptedTransport.replying([
      { $0.reply(.unavailable) }, { $0.reply(.aborted) }, { $0.reply("\"third\"") },
    ])
    let retrying = ProtocolClient.scripted(
      transport,
      interceptors: [
        Bytes.unary { request, _, next in
          var response = try await next(request)
          while response.error != nil { response = try await next(request) }
          return response
        }
      ]
    )
    let retried = await retrying.unary(.unary, "x")
    XCTAssertEqual(retried.message, "third")
    XCTAssertEqual(transport.streams.count, 3)

    let answering = ProtocolClient.scripted(
      .silent(),
      interceptors: [
        Bytes.unary { _, _, _ in HTTPResponse(code: .ok, message: ByteBuffer(string: "\"cached\"")) }
      ]
    )
    let answered = await answering.unary(.unary, "x")
    XCTAssertEqual(answered.message, "cached")

    let throwing = ProtocolClient.scripted(
      .silent(),
      interceptors: [Bytes.unary { _, _, _ in throw ConnectError(code: .permissionDenied, message: "no") }]
    )
    let thrown = await throwing.unary(.unary, "x")
    XCTAssertEqual(thrown.error?.code, .permissionDenied)
  }

  /// A retry of a message hook outside ends the run of the body, and calls it afresh.
  func testARetryOutsideCallsItAfresh() async {
    let runs = Box(0)
    let transport = ScriptedTransport.replying([{ $0.reply(.unavailable) }, { $0.reply("\"second\"") }])
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        TestInterceptor.make { interceptor in
          interceptor.unaryMessages.responseFunction = { response, proceed in
            if response.code == .unavailable { proceed.retry() } else { proceed(response) }
          }
        },
        Bytes.unary { request, _, next in
          _ = runs.increment()
          return try await next(request)
        },
      ]
    )
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(response.message, "second")
    XCTAssertEqual(runs.value, 2)
  }

  func testSeesTaskLocalValuesOfTheCallerAndOfOuterInterceptors() async {
    let seen = Box<[String]>([])
    let inner = Bytes.unary { request, _, next in
      seen.value = seen.value + [Self.trace]
      return try await next(request)
    }
    let outer = TestAsyncInterceptor.unary { request, next in
      try await Self.$trace.withValue(Self.trace + ", outer") { try await next(request) }
    }
    for (interceptors, trace) in [
      ([inner], "caller"), ([outer, inner], "caller, outer"), ([inner, outer], "caller, outer"),
    ] {
      seen.value = []
      let client = ProtocolClient.scripted(.echo(), interceptors: interceptors)
      let response = await Self.$trace.withValue("caller") { await client.unary(.unary, "x") }
      XCTAssertEqual(response.message, "x")
      XCTAssertEqual(seen.value, [trace])
      let outcome = Self.$trace.withValue("caller") { client.outcome(of: "x").outcome }
      _ = await outcome.wait()
      XCTAssertEqual(seen.value, [trace, trace])
    }
  }

  func testACancelledCallCancelsItsTask() async {
    let started = Signal<Void>()
    let cancelled = Signal<Bool>()
    let client = ProtocolClient.scripted(
      .silent(),
      interceptors: [
        Bytes.unary { request, _, next in
          started.fire()
          let response: HTTPResponse
          do {
            response = try await next(request)
          } catch {
            cancelled.fire(Task.isCancelled)
            throw error
          }
          cancelled.fire(Task.isCancelled)
          return response
        }
      ]
    )
    let task = Task { await client.unary(.unary, "x") }
    await started.wait()
    task.cancel()
    let response = await task.value
    XCTAssertEqual(response.code, .canceled)
    let isCancelled = await cancelled.wait()
    XCTAssertTrue(isCancelled)
  }

  func testStreams() async {
    let transport = ScriptedTransport { stream in
      stream.onFinish = { stream in
        stream.respondStream()
        for message in stream.sentMessages { stream.sendMessage(message) }
        stream.endStream()
      }
    }
    let seen = Box<[String]>([])
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        TestAsyncInterceptor.stream { request, next in
          try await Self.$trace.withValue("outer") { try await next(request.map { Text($0.text + "1") }) }
        },
        Bytes.stream { request, method, next in
          seen.value = [Self.trace, method.path]
          return try await next(
            request.map { ByteBuffer(string: String(buffer: $0).replacing("1", with: "2")) }
          )
          .map { ByteBuffer(string: String(buffer: $0).replacing("2", with: "3")) }
        },
      ]
    )
    let results = await client.results()
    XCTAssertEqual(results, ["headers", "a3", "b3", "end ok"])
    XCTAssertEqual(transport.streams[0].sentMessages, ["\"a2\"", "\"b2\""])
    XCTAssertEqual(seen.value, ["outer", "/test.Text/Bidi"])
  }

  func testDriversRunIt() async throws {
    let driver = InterceptorDriver { _ in
      Bytes(unary: { request, _, next in
        var request = request
        request.headers["x-a"] = ["1"]
        var response = try await next(request)
        response.headers["x-b"] = ["2"]
        return response
      })
    }
    let sent = try await driver.unary.request(driver.makeRequest(message: ByteBuffer())).outcome
    XCTAssertEqual(sent.request?.headers["x-a"], ["1"])
    let received = try await driver.unary.response(HTTPResponse(code: .ok, message: ByteBuffer())).outcome
    XCTAssertEqual(received.response?.headers["x-b"], ["2"])

    let stream = InterceptorDriver { _ in
      Bytes(stream: { request, _, next in
        try await next(request).map { ByteBuffer(string: String(buffer: $0) + "!") }
      })
    }
    let head = try await stream.stream.request(driver.makeRequest(message: ())).outcome
    XCTAssertNotNil(head.request)
    let result = try await stream.stream.result(.message(ByteBuffer(string: "a"))).outcome
    XCTAssertEqual(result.result?.short, "a!")
  }
}
