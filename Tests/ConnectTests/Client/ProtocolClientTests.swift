import Connect
import ConnectTesting
import NIOCore
import XCTest

/// The client as users meet it: hosts, headers, codecs, and the forms of calls.
final class ProtocolClientTests: XCTestCase {
  // MARK: Hosts

  func testAnInvalidHostFailsEveryFormOfCall() async {
    for host in ["", "demo.test", "ftp://demo.test", "http://", "http://a b", "http://x:99999"] {
      let transport = ScriptedTransport.echo()
      let client = ProtocolClient.scripted(transport) { $0.host = host }
      let unary = await client.unary(.unary, "x")
      XCTAssertEqual(unary.error?.code, .invalidArgument, host)
      let callback = await client.outcome(of: "x").outcome.wait()
      XCTAssertEqual(callback.error?.code, .invalidArgument, host)
      var results: [String] = []
      for await result in client.serverStream(.serverStream, "x").results { results.append(result.short) }
      XCTAssertEqual(results, ["end invalid_argument"], host)
      let upload = client.clientStream(.clientStream)
      let response = await upload.closeAndReceive()
      XCTAssertEqual(response.error?.code, .invalidArgument, host)
      let bidirectional = client.bidirectionalStream(.bidirectional)
      for await result in bidirectional.results { XCTAssertEqual(result.short, "end invalid_argument", host) }
      let called = Signal<String>()
      client.serverStream(.serverStream, "x") { called.fire($0.short) }
      _ = client.clientStream(.clientStream) { called.fire("end \($0.code)") }
      _ = client.bidirectionalStream(.bidirectional, demand: 0) { called.fire($0.short) }
      for _ in 0..<3 {
        let end = await called.wait()
        XCTAssertEqual(end, "end invalid_argument", host)
      }
      XCTAssertEqual(transport.streams.count, 0)
    }
  }

  // MARK: Headers

  /// A task that prefers the client's executor is where the call lives, before and after it waits; others are not.
  func testTheTaskExecutorIsWhereCallsLive() async throws {
    let transport = ScriptedTransport.echo()
    let client = ProtocolClient.scripted(transport)
    let executor = transport.virtualExecutor
    @Sendable func call() async throws -> [Bool] {
      let before = executor.isCurrent
      _ = try await client.unary(.unary, "a").get()
      return [before, executor.isCurrent]
    }
    let preferring = try await Task(executorPreference: client.taskExecutor) { try await call() }.value
    XCTAssertEqual(preferring, [true, true])
    let other = try await Task { try await call() }.value
    XCTAssertEqual(other, [false, false])
  }

  func testHeadersThatMustNotBeSent() async {
    for (name, value) in [
      ("bad name", "x"), ("", "x"), ("x-a", "a\r\nb: c"), ("x-a", "a\nb"), ("x-a", "a\0"),
      ("connect-timeout-ms", "1"), ("Content-Type", "text/plain"), (":path", "/"), ("Host", "x"),
      ("content-length", "1"), ("grpc-timeout", "1"), ("transfer-encoding", "chunked"),
    ] {
      var headers = Headers()
      headers.add(name: name, value: value)
      let transport = ScriptedTransport.echo()
      let options = CallOptions(headers: headers)
      let unary = await ProtocolClient.scripted(transport).unary(.unary, "x", options: options)
      XCTAssertEqual(unary.error?.code, .invalidArgument, name)
      XCTAssertTrue(
        name.isEmpty || unary.error?.message?.lowercased().contains(name.lowercased()) == true,
        name
      )

      let added = headers
      let adding = TestInterceptor.make { interceptor in
        interceptor.unaryBytes.requestFunction = { request, proceed in
          var request = request
          request.headers.append(contentsOf: added)
          proceed(.success(request))
        }
        interceptor.streamBytes.requestFunction = { request, proceed in
          var request = request
          request.headers.append(contentsOf: added)
          proceed(.success(request))
        }
      }
      let client = ProtocolClient.scripted(transport, interceptors: [adding])
      let hooked = await client.unary(.unary, "x")
      XCTAssertEqual(hooked.error?.code, .invalidArgument, name)
      var results: [String] = []
      for await result in client.serverStream(.serverStream, "x").results { results.append(result.short) }
      XCTAssertEqual(results, ["end invalid_argument"], name)
      XCTAssertEqual(transport.streams.count, 0, name)
    }
  }

  // MARK: Codec and message counts

  func testCodecFailures() async {
    struct FailingCodec: Codec {
      struct Failure: Error {}
      let failsToEncode: Bool
      var name: String { "json" }
      func encode<M: Sendable>(_ m: M, as coding: MessageCoding<M>, deterministic: Bool) throws -> ByteBuffer
      {
        if self.failsToEncode { throw Failure() }
        return try JSONCodec().encode(m, as: coding, deterministic: deterministic)
      }
      func decode<M: Sendable>(_ bytes: ByteBuffer, as coding: MessageCoding<M>) throws -> M {
        throw Failure()
      }
    }
    for failsToEncode in [true, false] {
      let transport = ScriptedTransport { stream in
        if stream.request.target.hasSuffix("Unary") {
          stream.reply("\"x\"")
        } else {
          StreamChainTests.echo(stream)
        }
      }
      let client = ProtocolClient.scripted(transport) {
        $0.codec = FailingCodec(failsToEncode: failsToEncode)
      }
      let unary = await client.unary(.unary, "x")
      XCTAssertEqual(unary.error?.code, .internalError)
      XCTAssertTrue(unary.error?.exception is FailingCodec.Failure)
      var last: StreamResult<Text>?
      for await result in client.serverStream(.serverStream, "x").results { last = result }
      guard case .complete(.internalError, let error?, _)? = last else {
        XCTFail("\(String(describing: last))")
        return
      }
      XCTAssertTrue(error.exception is FailingCodec.Failure)
      XCTAssertTrue(transport.streams.last?.isCancelled == true || transport.streams.last?.isFinished == true)
    }
  }

  func testOneMessageIsExpected() async {
    for (count, code) in [(0, Code.unimplemented), (1, .ok), (2, .unimplemented)] {
      let transport = ScriptedTransport { stream in
        stream.onFinish = { stream in
          stream.respondStream()
          for _ in 0..<count { stream.sendMessage("\"x\"") }
          stream.endStream()
        }
      }
      let client = ProtocolClient.scripted(transport)
      let stream = client.clientStream(.clientStream)
      try? await stream.send("a")
      let response = await stream.closeAndReceive()
      XCTAssertEqual(response.code, code, "\(count)")
      let called = Signal<ResponseMessage<Text>>()
      let handle = client.clientStream(.clientStream) { called.fire($0) }
      handle.finish()
      let callback = await called.wait()
      XCTAssertEqual(callback.code, code, "\(count)")
      transport.virtualExecutor.runUntilIdle()
      XCTAssertEqual(called.count, 0)
    }
  }

  // MARK: Sending

  func testSendAfterFinishAndAfterTheEnd() async {
    let transport = ScriptedTransport(StreamChainTests.echo)
    let stream = ProtocolClient.scripted(transport).bidirectionalStream(.bidirectional)
    stream.finish()
    await self.assertSendFails(stream)
    for await _ in stream.results {}
    await self.assertSendFails(stream)
  }

  private func assertSendFails(_ stream: BidirectionalStream<Text, Text>) async {
    do {
      try await stream.send("late")
      XCTFail("sent")
    } catch {
      XCTAssertEqual(error.code, .failedPrecondition)
    }
  }

  func testTooManyQueuedMessages() async {
    let transport = ScriptedTransport { $0.isWritable = false }
    let client = ProtocolClient.scripted(transport) { $0.limits.maximumQueuedMessages = 5 }
    let handle = client.bidirectionalStream(.bidirectional) { _ in }
    let codes = Box<[Code?]>([])
    let large = Text(String(repeating: "x", count: 100_000))
    for _ in 0..<8 { handle.send(large) { codes.value = codes.value + [$0?.code] } }
    transport.virtualExecutor.runUntilIdle()
    XCTAssertEqual(codes.value, [nil, .resourceExhausted, .resourceExhausted])
    handle.cancel()
    transport.virtualExecutor.runUntilIdle()
    XCTAssertEqual(codes.value.count, 8)
    XCTAssertEqual(codes.value.suffix(5), Array(repeating: .failedPrecondition, count: 5))
  }

  // MARK: Reading

  private static let three: ScriptedTransport.Script = { stream in
    stream.respondStream()
    for message in ["\"a\"", "\"b\"", "\"c\""] { stream.sendMessage(message) }
    stream.endStream()
  }

  func testDemandOfCallbackStreams() async {
    let transport = ScriptedTransport(Self.three)
    let results = Box<[String]>([])
    let handle = ProtocolClient.scripted(transport).serverStream(.serverStream, "x", demand: 1) {
      results.value = results.value + [$0.short]
    }
    transport.virtualExecutor.runUntilIdle()
    XCTAssertEqual(results.value, ["headers"])
    handle.request(0)
    handle.request(-3)
    handle.request(2)
    transport.virtualExecutor.runUntilIdle()
    XCTAssertEqual(results.value, ["headers", "a", "b"])
    handle.request(.max)
    handle.request(.max)
    transport.virtualExecutor.runUntilIdle()
    XCTAssertEqual(results.value, ["headers", "a", "b", "c", "end ok"])
    let none = Box(0)
    let idle = ProtocolClient.scripted(transport).serverStream(.serverStream, "x", demand: -1) { _ in
      _ = none.increment()
    }
    transport.virtualExecutor.runUntilIdle()
    XCTAssertEqual(none.value, 0)
    idle.cancel()
  }

  func testResultsCarryErrorsAndMetadata() async {
    let client = ProtocolClient.scripted(ScriptedTransport { $0.reply(.notFound, "gone", status: 404) })
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(response.error?.code, .notFound)
    XCTAssertEqual(response.error?.message, "gone")
    XCTAssertEqual(response.error?.httpStatus, 404)
    XCTAssertThrowsError(try response.get())
  }
}
