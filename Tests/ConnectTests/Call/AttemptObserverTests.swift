import ConnectTesting
import NIOCore
import XCTest

@testable import Connect

/// What interceptors hear of the attempts of a call.
final class AttemptObserverTests: XCTestCase {
  /// An interceptor that notes the events, and may end the call in one of them.
  private struct Observer: Interceptor {
    let events: Events
    var onEvent: @Sendable (AttemptEvent) -> Void = { _ in }

    func callFunction(_ method: MethodInfo) -> CallFunction {
      CallFunction(endFunction: { outcome in self.events.add("end \(outcome.code)") })
    }

    func attemptFunction() -> AttemptFunction? {
      { event in
        switch event {
        case .started(let start): self.events.add("\(start.number) \(start.kind) after \(start.idleTime)")
        case .ended(let record):
          self.events.add(
            "\(record.number) \(record.kind) \(record.code) \(record.duration) "
              + "\(record.sentMessageBytes) \(record.receivedMessageBytes)"
          )
        }
        self.onEvent(event)
      }
    }
  }

  private let events = Events()

  private func observing(
    in events: Events? = nil,
    _ onEvent: @escaping @Sendable (AttemptEvent) -> Void = { _ in }
  ) -> InterceptorFactory {
    let events = events ?? self.events
    return { _ in Observer(events: events, onEvent: onEvent) }
  }

  private static let refused: ScriptedTransport.Script = {
    $0.fail(ConnectError(code: .unavailable, message: "refused"), isUnprocessed: true)
  }

  func testOneAttempt() async {
    let transport = ScriptedTransport { $0.reply("\"answer\"") }
    let client = ProtocolClient.scripted(transport, interceptors: [self.observing()])
    let code = await client.unary(.unary, "x").code
    XCTAssertEqual(code, .ok)
    XCTAssertEqual(
      self.events.all,
      ["1 original after 0.0 seconds", "1 original ok 0.0 seconds 3 8", "end ok"]
    )
  }

  /// The bytes of an error are no message.
  func testAnErrorOfTheServer() async {
    let transport = ScriptedTransport { $0.reply(.notFound) }
    let client = ProtocolClient.scripted(transport, interceptors: [self.observing()])
    _ = await client.unary(.unary, "x")
    XCTAssertEqual(
      self.events.all,
      ["1 original after 0.0 seconds", "1 original not_found 0.0 seconds 3 0", "end not_found"]
    )
  }

  func testTransparentRetry() async {
    let transport = ScriptedTransport.replying([Self.refused, { $0.reply("\"y\"") }])
    let client = ProtocolClient.scripted(transport, interceptors: [self.observing()])
    let code = await client.unary(.unary, "x").code
    XCTAssertEqual(code, .ok)
    XCTAssertEqual(
      self.events.all,
      [
        "1 original after 0.0 seconds", "1 original unavailable 0.0 seconds 3 0",
        "1 transparentRetry after 0.0 seconds", "1 transparentRetry ok 0.0 seconds 3 3", "end ok",
      ]
    )
  }

  func testRetriesOfAnInterceptor() async {
    let transport = ScriptedTransport.replying([{ $0.reply(.unavailable) }, { $0.reply("\"y\"") }])
    let retrying = TestInterceptor.make { interceptor in
      interceptor.unaryBytes.responseFunction = { response, proceed in
        if response.error != nil { proceed.retry(after: .seconds(2)) } else { proceed(response) }
      }
    }
    let client = ProtocolClient.scripted(transport, interceptors: [self.observing(), retrying])
    let done = Signal<Code>()
    client.unary(.unary, "x") { done.fire($0.code) }
    transport.virtualExecutor.advance(by: .seconds(10))
    let code = await done.wait()
    XCTAssertEqual(code, .ok)
    XCTAssertEqual(
      self.events.all,
      [
        "1 original after 0.0 seconds", "1 original unavailable 0.0 seconds 3 0",
        "2 retry after 2.0 seconds", "2 retry ok 0.0 seconds 3 3", "end ok",
      ]
    )
  }

  /// The attempts that lose end, too.
  func testHedges() async {
    let call = HedgedCall(interceptors: [self.observing()])
    call.advance(by: .seconds(1))
    call.attempt(2) { $0.reply("\"y\"") }
    let code = await call.outcome().code
    XCTAssertEqual(code, .ok)
    XCTAssertEqual(
      self.events.all,
      [
        "1 original after 0.0 seconds", "2 hedge after 0.0 seconds", "2 hedge ok 0.0 seconds 3 3",
        "1 original canceled 1.0 seconds 3 0", "end ok",
      ]
    )
  }

  func testAHedgeAfterThePushbackOfTheServer() async {
    let call = HedgedCall(interceptors: [self.observing()])
    call.attempt(1) { $0.reply(.unavailable, headers: ["grpc-retry-pushback-ms": ["500"]]) }
    call.advance(by: .seconds(1))
    call.attempt(2) { $0.reply("\"y\"") }
    let code = await call.outcome().code
    XCTAssertEqual(code, .ok)
    XCTAssertEqual(self.events.all[2], "2 hedge after 0.5 seconds")
  }

  /// Also attempts that the deadline ends, or the caller.
  func testDeadlineAndCancellation() async {
    for isByDeadline in [true, false] {
      let events = Events()
      let call = HedgedCall(
        interceptors: [self.observing(in: events)],
        timeout: isByDeadline ? .milliseconds(1500) : nil
      )
      call.advance(by: .milliseconds(1500))
      if !isByDeadline { call.handle.cancel() }
      let code = isByDeadline ? Code.deadlineExceeded : .canceled
      let outcome = await call.outcome().code
      XCTAssertEqual(outcome, code)
      XCTAssertEqual(
        events.all,
        [
          "1 original after 0.0 seconds", "2 hedge after 0.0 seconds", "1 original \(code) 1.5 seconds 3 0",
          "2 hedge \(code) 0.5 seconds 3 0", "end \(code)",
        ]
      )
    }
  }

  func testAnotherProtocol() async {
    let peer = ProtocolPeer(["grpc": .otherVersion])
    let client = peer.client(interceptors: [self.observing()])
    let code = await client.unary(.unary, "x").code
    XCTAssertEqual(code, .ok)
    XCTAssertEqual(
      self.events.all,
      [
        "1 original after 0.0 seconds", "1 original unavailable 0.0 seconds 3 0",
        "1 transparentRetry after 0.0 seconds", "1 transparentRetry ok 0.0 seconds 3 3", "end ok",
      ]
    )
  }

  /// What does not get to the network is no attempt.
  func testARequestThatCannotBeSent() async {
    let transport = ScriptedTransport { $0.reply("\"y\"") }
    let client = ProtocolClient.scripted(transport, interceptors: [self.observing()]) {
      $0.limits.maximumSentMessageSize = 1
    }
    let code = await client.unary(.unary, "x").code
    XCTAssertEqual(code, .resourceExhausted)
    XCTAssertEqual(self.events.all, ["end resource_exhausted"])
  }

  /// The messages alone count, without envelopes and the end of the response.
  func testStreams() async throws {
    let transport = ScriptedTransport { stream in
      stream.respondStream()
      stream.sendMessage("\"abc\"")
      stream.sendMessage("\"d\"")
      stream.endStream()
    }
    let client = ProtocolClient.scripted(transport, interceptors: [self.observing()])
    let messages = try await client.serverStream(.serverStream, "x").results.collected().requireMessages()
    XCTAssertEqual(messages, ["abc", "d"])
    XCTAssertEqual(
      self.events.all,
      ["1 original after 0.0 seconds", "1 original ok 0.0 seconds 3 8", "end ok"]
    )
  }

  /// A page that a proxy has sent with status 200 is no message.
  func testAPageInPlaceOfAnAnswer() async {
    let transport = ScriptedTransport { stream in
      stream.respond(headers: ["content-type": ["text/html"]])
      stream.send(ByteBuffer(string: "<html></html>"))
      stream.end()
    }
    let client = ProtocolClient.scripted(transport, interceptors: [self.observing()])
    let code = await client.unary(.unary, "x").code
    XCTAssertEqual(self.events.all[1], "1 original \(code) 0.0 seconds 3 0")
    XCTAssertNotEqual(code, .ok)
  }

  /// Requests that an interceptor has failed before they got to the network were no attempts.
  func testTheFirstAttemptOnTheWireIsTheOriginal() async {
    let transport = ScriptedTransport.replying([{ $0.reply(.unavailable) }, { $0.reply("\"y\"") }])
    let retrying = TestInterceptor.make { interceptor in
      interceptor.unaryMessages.responseFunction = { response, proceed in
        if response.error != nil { proceed.retry() } else { proceed(response) }
      }
    }
    let count = Box(0)
    let failingOnce = TestInterceptor.make { interceptor in
      interceptor.unaryBytes.requestFunction = { request, proceed in
        let isFirst = count.increment() == 1
        proceed(isFirst ? .failure(ConnectError(code: .unavailable)) : .success(request))
      }
    }
    let client = ProtocolClient.scripted(transport, interceptors: [self.observing(), retrying, failingOnce])
    let code = await client.unary(.unary, "x").code
    XCTAssertEqual(code, .ok)
    XCTAssertEqual(
      self.events.all,
      [
        "2 original after 0.0 seconds", "2 original unavailable 0.0 seconds 3 0",
        "3 retry after 0.0 seconds", "3 retry ok 0.0 seconds 3 3", "end ok",
      ]
    )
  }

  /// An attempt that goes on in another protocol keeps its number, whatever has started since.
  func testAnotherProtocolWhileHedgesRun() async {
    let call = HedgedCall(
      interceptors: [self.observing()],
      configure: { $0.networkProtocol = .automatic() }
    )
    call.advance(by: .seconds(1))
    call.attempt(1) { $0.fail(ConnectError(code: .unavailable), isVersionMismatch: true) }
    call.attempt(3) { $0.echo() }
    let code = await call.outcome().code
    XCTAssertEqual(code, .ok)
    XCTAssertEqual(
      self.events.all,
      [
        "1 original after 0.0 seconds", "2 hedge after 0.0 seconds", "1 original unavailable 1.0 seconds 3 0",
        "1 transparentRetry after 0.0 seconds", "1 transparentRetry ok 0.0 seconds 3 3",
        "2 hedge canceled 0.0 seconds 3 0", "end ok",
      ]
    )
  }

  // MARK: Bytes

  func testMessagesAreCountedWhereverChunksBegin() {
    var body = ByteBuffer()
    for (flags, size) in [(0, 3), (1, 700), (0, 0), (1, 0), (0, 5), (2, 9), (128, 4)] as [(UInt8, Int)] {
      body.writeInteger(flags)
      body.writeInteger(UInt32(size))
      body.writeRepeatingByte(7, count: size)
    }
    for chunk in [1, 2, 4, 5, 6, 7, 100, 10_000] {
      var count = MessageByteCount(isEnveloped: true)
      count.isCounting = true
      var rest = body
      while rest.readableBytes > 0 {
        guard let piece = rest.readSlice(length: min(chunk, rest.readableBytes)) else { break }
        count.add(piece)
      }
      XCTAssertEqual(count.total, 708, "\(chunk)")
    }
  }

  /// Base64 whose pieces have their own padding, as servers send it, and as this client does.
  func testMessagesAreCountedInBase64() {
    var body = ByteBuffer()
    for size in [3, 700, 0, 5] {
      let message = ByteBuffer(repeating: 7, count: size)
      var piece = GRPCWebProtocol(isText: true).frame(message, isCompressed: false, streamType: .unary)
      XCTAssertEqual(Base64.decodedLength(ofPadded: piece), size + 5)
      body.writeBuffer(&piece)
    }
    XCTAssertEqual(Base64.decodedLength(ofPadded: ByteBuffer()), 0)
    for chunk in [1, 2, 3, 4, 5, 7, 100, 10_000] {
      var count = MessageByteCount(isEnveloped: true, isBase64: true)
      count.isCounting = true
      var rest = body
      while rest.readableBytes > 0 {
        guard let piece = rest.readSlice(length: min(chunk, rest.readableBytes)) else { break }
        count.add(piece)
      }
      XCTAssertEqual(count.total, 708, "\(chunk)")
    }
  }
}
