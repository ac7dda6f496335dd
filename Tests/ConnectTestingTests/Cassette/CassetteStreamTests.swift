import Connect
import ConnectTesting
import LoopbackServer
import NIOCore
import SwiftProtobuf
import TestSupport
import XCTest

/// How streams are served: in their order, in time, within the client's demand, and until they are given up.
final class CassetteStreamTests: XCTestCase {
  private static let configuration = Cassette.Configuration(messages: TapedCalls.messages)

  /// A server in virtual time: each answer comes 2 seconds after its message, the head after 1 second.
  private static func slowServer(_ executor: VirtualExecutor) -> InMemoryTransport {
    let transport = InMemoryTransport(executor: executor)
    transport.onUnary(TestMethods.echo) { request, context in
      try await context.sleep(for: .seconds(3))
      return .with { $0.payload = request.payload }
    }
    transport.onServerStream(TestMethods.count) { request, responses, context in
      try await context.sleep(for: .seconds(1))
      try await context.sendHeaders()
      for number in 1...3 {
        try await context.sleep(for: .seconds(2))
        try await responses.send(.with { $0.number = Int64(number) })
      }
    }
    transport.onBidirectionalStream(TestMethods.converse) { requests, responses, context in
      for try await request in requests {
        try await context.sleep(for: .seconds(2))
        try await responses.send(.with { $0.payload = request.payload })
      }
    }
    return transport
  }

  func testRecordedTimesAreServedInVirtualTime() async throws {
    for setting in WireSetting.inMemory where !setting.isCompressed {
      let executor = VirtualExecutor()
      let cassette = try Cassette(configuration: Self.configuration)
      let recording = try CassetteTransport(cassette, over: Self.slowServer(executor), mode: .record)
      func makeCalls(_ client: ProtocolClient, _ executor: VirtualExecutor) async throws -> [String] {
        try await executor.lettingTimePass {
          let start = executor.now
          var all = [
            TapedCalls.summary(await client.unary(TestMethods.echo, .with { $0.payload.text = "a" }))
          ]
          all.append("\(executor.now - start)")
          let stream = client.serverStream(TestMethods.count, CountRequest())
          for await result in stream.results {
            if case .message(let message) = result { all.append("\(message.number) \(executor.now - start)") }
          }
          all.append("\(executor.now - start)")
          all.append(try await TapedCalls.converse(client, ["a", "b"]))
          all.append("\(executor.now - start)")
          return all
        }
      }
      let expected = try await makeCalls(setting.client(over: recording), executor)
      XCTAssertEqual(executor.now, .seconds(14), "\(setting)")

      let virtual = VirtualExecutor()
      let copy = try Cassette(text: cassette.text, configuration: Self.configuration)
      let replay = try CassetteTransport(copy, executor: virtual, timing: .recorded)
      let actual = try await makeCalls(setting.client(over: replay), virtual)
      try requireEqual(actual, expected, "\(setting)")

      let atOnce = VirtualExecutor()
      let second = try Cassette(text: cassette.text, configuration: Self.configuration)
      let quick = try CassetteTransport(second, executor: atOnce)
      _ = try await makeCalls(setting.client(over: quick), atOnce)
      XCTAssertEqual(atOnce.now, .zero, "\(setting)")
    }
  }

  /// Which of two calls is meant shows with the second message only.
  func testStreamsWithTheSameBeginning() async throws {
    for setting in WireSetting.inMemory {
      let cassette = try Cassette(configuration: Self.configuration)
      let recording = try CassetteTransport(cassette, over: TapedCalls.server(setting), mode: .record)
      let recorder = setting.client(over: recording)
      var expected: [[String]: String] = [:]
      let talks = [["a", "b"], ["a", "c"], ["a"], ["x", "b", "d"]]
      for texts in talks { expected[texts] = try await TapedCalls.converse(recorder, texts) }

      let replay = try CassetteTransport(
        try Cassette(text: cassette.text, configuration: Self.configuration)
      )
      let client = setting.client(over: replay)
      for texts in talks.reversed() {
        let actual = try await TapedCalls.converse(client, texts)
        try requireEqual(actual, expected[texts], "\(setting), \(texts)")
      }
      try await replay.finish()
    }
  }

  /// A call that its client gives up is recorded as far as it came, and replayed as far.
  func testCallsThatAreGivenUp() async throws {
    for setting in WireSetting.inMemory where !setting.isCompressed {
      func makeCalls(_ client: ProtocolClient, _ executor: VirtualExecutor) async throws -> [String] {
        try await executor.lettingTimePass {
          var all: [String] = []
          let stream = client.serverStream(TestMethods.count, CountRequest())
          for try await message in stream.messages {
            all.append("\(message.number)")
            break
          }
          let options = CallOptions(timeout: .seconds(1))
          let response = await client.unary(
            TestMethods.echo,
            .with { $0.payload.text = "late" },
            options: options
          )
          all.append(TapedCalls.summary(response))
          return all
        }
      }
      let executor = VirtualExecutor()
      let cassette = try Cassette(configuration: Self.configuration)
      let recording = try CassetteTransport(cassette, over: Self.slowServer(executor), mode: .record)
      let expected = try await makeCalls(setting.client(over: recording), executor)
      executor.runUntilIdle()
      try await recording.finish()
      XCTAssertEqual(cassette.count, 2)

      let virtual = VirtualExecutor()
      let replay = try CassetteTransport(
        try Cassette(text: cassette.text, configuration: Self.configuration),
        executor: virtual,
        timing: .recorded
      )
      let actual = try await makeCalls(setting.client(over: replay), virtual)
      try requireEqual(actual, expected, "\(setting)")
      virtual.runUntilIdle()
      try await replay.finish()
      XCTAssertEqual(virtual.scheduled, [], "\(setting)")
    }
  }

  /// A call that is given up before the cassette has looked at it counts as asked.
  func testCallThatIsGivenUpAtOnce() throws {
    let text = """
      {"cassette": 1, "exchanges": [{"call": "/a.B/C", "headers": {}, "http": "POST", "over": "HTTP/2",
        "wire": "grpc+proto", "parts": [{"cancel": {}}]}]}
      """
    let executor = VirtualExecutor()
    let transport = try CassetteTransport(try Cassette(text: text), executor: executor)
    let origin = Origin(scheme: .https, host: "example.com", port: 443)
    let endpoint = try transport.endpoint(for: origin, on: nil, requiresHTTP2: true)
    let request = HTTPStreamRequest(
      method: .post,
      target: "/a.B/C",
      headers: ["content-type": ["application/grpc"]],
      body: .streamed
    )
    XCTAssertEqual(transport.cassette.unusedCalls.count, 1)
    let events = executor.sync {
      let handler = Handler()
      endpoint.startStream(request, handler: handler).cancel()
      return Confined(handler)
    }
    executor.runUntilIdle()
    XCTAssertEqual(transport.cassette.unusedCalls, [])
    XCTAssertEqual(executor.sync { events.value.events }, [])
  }

  /// A response that comes before the request has ended.
  func testEarlyAnswer() async throws {
    for setting in WireSetting.inMemory {
      let server = setting.transport
      server.onClientStream(TestMethods.sum) { requests, _ in
        var requests = requests.makeAsyncIterator()
        let first = try await requests.next()
        return .with { $0.sum = first?.number ?? 0 }
      }
      func makeCall(_ client: ProtocolClient) async throws -> String {
        let stream = client.clientStream(TestMethods.sum, options: CallOptions(timeout: .seconds(20)))
        try await stream.send(.with { $0.number = 7 })
        return TapedCalls.summary(await stream.closeAndReceive())
      }
      let cassette = try Cassette(configuration: Self.configuration)
      let recording = try CassetteTransport(cassette, over: server, mode: .record)
      let expected = try await makeCall(setting.client(over: recording))
      let replay = try CassetteTransport(cassette)
      let actual = try await makeCall(setting.client(over: replay))
      try requireEqual(actual, expected, "\(setting)")
    }
  }

  func testLargeBodies() async throws {
    for setting in WireSetting.inMemory where !setting.isCompressed {
      let server = setting.transport
      let data = Data((0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 7919 >> 3) })
      server.onServerStream(TestMethods.flood) { _, responses, _ in
        for _ in 0..<3 { try await responses.send(.with { $0.data = data }) }
      }
      let cassette = try Cassette()
      let recording = try CassetteTransport(cassette, over: server, mode: .record)
      let request = Connect_Test_V1_FloodRequest()
      let first = setting.client(over: recording).serverStream(TestMethods.flood, request)
      try requireEqual(try await first.results.collected().requireMessages().map(\.data), [data, data, data])

      let replay = try CassetteTransport(try Cassette(text: cassette.text))
      let second = setting.client(over: replay).serverStream(TestMethods.flood, request)
      try requireEqual(
        try await second.results.collected().requireMessages().map(\.data),
        [data, data, data]
      )
    }
  }

  /// The client gets no more than a window that it has not consumed.
  func testWindow() throws {
    let body = Data(count: 100_000).base64EncodedString()
    let text = """
      {"cassette": 1, "exchanges": [{"call": "/a.B/C", "headers": {}, "http": "POST", "over": "HTTP/2",
        "wire": "connect+proto", "parts": [{"send": {"base64": ""}}, {"finish": {}}, {"head": {"status": 200,
        "headers": {"content-type": "application/proto"}}}, {"receive": {"base64": "\(body)"}}, {"end": {}}]}]}
      """
    let executor = VirtualExecutor()
    let transport = try CassetteTransport(try Cassette(text: text), executor: executor)
    let origin = Origin(scheme: .https, host: "example.com", port: 443)
    let endpoint = try transport.endpoint(for: origin, on: nil, requiresHTTP2: false)
    let request = HTTPStreamRequest(
      method: .post,
      target: "/a.B/C",
      headers: ["content-type": ["application/proto"]],
      body: .complete(ByteBuffer())
    )
    let handler = Confined(Handler())
    let stream = executor.sync { Confined(endpoint.startStream(request, handler: handler.value)) }
    executor.runUntilIdle()
    let first = ["start HTTP/2", "head 200", "65535 bytes"]
    XCTAssertEqual(executor.sync { handler.value.events }, first)
    executor.sync { stream.value.consume(1000) }
    executor.runUntilIdle()
    XCTAssertEqual(executor.sync { handler.value.events }, first + ["1000 bytes"])
    executor.sync { stream.value.consume(65535) }
    executor.runUntilIdle()
    XCTAssertEqual(executor.sync { handler.value.events }, first + ["1000 bytes", "33465 bytes", "end "])
  }

  /// The executor hears of nothing while the call is in a function of the stream.
  func testNothingIsToldFromWithinTheStreamsFunctions() throws {
    let text = """
      {"cassette": 1, "exchanges": [{"call": "/a.B/C", "headers": {}, "http": "POST", "over": "HTTP/2",
        "wire": "grpc+json", "parts": [{"send": {"json": {"a": 1}}}, {"head": {"status": 200,
        "headers": {"content-type": "application/grpc+json"}}}, {"receive": {"json": {"b": 2}}}, {"finish": {}},
        {"end": {"grpc-status": "0"}}]}]}
      """
    let executor = VirtualExecutor()
    let transport = try CassetteTransport(try Cassette(text: text), executor: executor)
    let origin = Origin(scheme: .https, host: "example.com", port: 443)
    let endpoint = try transport.endpoint(for: origin, on: nil, requiresHTTP2: true)
    let request = HTTPStreamRequest(
      method: .post,
      target: "/a.B/C",
      headers: ["content-type": ["application/grpc+json"]],
      body: .streamed
    )
    let handler = Confined(Handler())
    let stream = executor.sync { () -> Confined<any HTTPStream> in
      handler.value.isInside = true
      let stream = endpoint.startStream(request, handler: handler.value)
      handler.value.isInside = false
      return Confined(stream)
    }
    executor.runUntilIdle()
    XCTAssertEqual(executor.sync { handler.value.events }, [])
    func inside(_ body: (any HTTPStream) -> Void) {
      executor.sync {
        handler.value.isInside = true
        body(stream.value)
        handler.value.isInside = false
      }
      executor.runUntilIdle()
    }
    inside { $0.write(ByteBuffer(bytes: [0, 0, 0, 0, 8] + Array("{\"a\": 1}".utf8))) }
    let first = ["writable", "start HTTP/2", "head 200", "12 bytes"]
    XCTAssertEqual(executor.sync { handler.value.events }, first)
    inside { $0.consume(12) }
    inside { $0.finish(trailers: [:]) }
    XCTAssertEqual(executor.sync { handler.value.events }, first + ["end 0"])
    inside { $0.cancel() }
    XCTAssertEqual(executor.sync { handler.value.events }, first + ["end 0"])
    XCTAssertEqual(transport.cassette.unusedCalls, [])
  }
}

/// Notes what it is told, and whether that was from within a function of the stream.
private final class Handler: HTTPStreamHandler {
  var isInside = false
  var events: [String] = []
  private func note(_ event: String) { self.events.append(self.isInside ? "inside: \(event)" : event) }
  func streamDidStart(on connection: HTTPConnectionInfo) {
    self.note("start \(connection.version.rawValue)")
  }
  func streamDidBecomeWritable() { self.note("writable") }
  func streamDidReceive(_ head: HTTPResponseHead) { self.note("head \(head.status)") }
  func streamDidReceive(_ bytes: ByteBuffer) { self.note("\(bytes.readableBytes) bytes") }
  func streamDidEnd(trailers: Headers) { self.note("end \(trailers.first("grpc-status") ?? "")") }
  func streamDidFail(_ failure: HTTPStreamFailure) { self.note("fail \(failure.error)") }
}
