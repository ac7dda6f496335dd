import Connect
import ConnectTesting
import NIOCore
import XCTest

/// DESIGN.md, "Interceptors", for streams with closure hooks.
final class StreamChainTests: XCTestCase {
  /// Answers each message at the request's end.
  static let echo: ScriptedTransport.Script = { stream in
    stream.onFinish = { stream in
      stream.respondStream()
      for message in stream.sentMessages { stream.sendMessage(message) }
      stream.endStream()
    }
  }

  // MARK: Order

  func testFactoriesRunOncePerStream() async {
    let made = Box(0)
    let client = ProtocolClient.scripted(
      ScriptedTransport(Self.echo),
      interceptors: [
        { _ in
          _ = made.increment()
          return TestInterceptor()
        }
      ]
    )
    let results = await client.results()
    XCTAssertEqual(results, ["headers", "a", "b", "end ok"])
    XCTAssertEqual(made.value, 1)
  }

  func testRequestsPassInOrderAndResultsInReverse() async {
    let probe = InterceptorProbe()
    let client = ProtocolClient.scripted(
      ScriptedTransport(Self.echo),
      interceptors: ["A", "B"].map { probe.factory($0, levels: [.message]) }
    )
    let results = await client.results(sending: ["x"])
    XCTAssertEqual(results, ["headers", "x", "end ok"])
    XCTAssertEqual(
      probe.events.map(\.short),
      [
        "A head", "B head", "A > x", "B > x",
        "B < headers", "A < headers", "B < x", "A < x", "B < end ok", "A < end ok",
      ]
    )
  }

  func testByteHooksSeeEncodedMessagesInsideOfMessageHooks() async {
    let probe = InterceptorProbe()
    let client = ProtocolClient.scripted(
      ScriptedTransport(Self.echo),
      interceptors: [
        probe.factory("byte", levels: [.byte]),
        probe.factory("M", levels: [.message]),
      ]
    )
    _ = await client.results(sending: ["x"])
    XCTAssertEqual(
      probe.events.map(\.short),
      [
        "M head", "byte head", "M > x", "byte > \"x\"",
        "byte < headers", "M < headers", "byte < \"x\"", "M < x", "byte < end ok", "M < end ok",
      ]
    )
  }

  func testOrderIsKeptWhenHooksProceedOutOfOrder() async {
    let client = ProtocolClient.scripted(
      ScriptedTransport(Self.echo),
      interceptors: [
        { _ in
          var requests: [@Sendable () -> Void] = []
          var results: [@Sendable () -> Void] = []
          var interceptor = TestInterceptor()
          interceptor.streamMessages = StreamMessageFunction(
            requestMessageFunction: { message, proceed in
              requests.append { proceed(message) }
              if requests.count == 3 { requests.reversed().forEach { $0() } }
            },
            streamResultFunction: { result, proceed in
              results.append { proceed(result) }
              if results.count == 5 { results.reversed().forEach { $0() } }
            }
          )
          return interceptor
        }
      ]
    )
    let results = await client.results(sending: ["a", "b", "c"])
    XCTAssertEqual(results, ["headers", "a", "b", "c", "end ok"])
  }

  func testRequestMessagesWaitUntilTheHeadHasProceeded() async throws {
    let events = Events()
    let head = Signal<@Sendable () -> Void>()
    let transport = ScriptedTransport(Self.echo)
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        TestInterceptor.make { interceptor in
          interceptor.streamMessages = StreamMessageFunction(
            requestFunction: { request, proceed in head.fire { proceed(.success(request)) } },
            requestMessageFunction: { message, proceed in
              events.add(message.text)
              proceed(message)
            }
          )
        }
      ]
    )
    let handle = client.bidirectionalStream(.bidirectional) { _ in }
    let accepted = Signal<ConnectError?>()
    handle.send("a") { accepted.fire($0) }
    transport.virtualExecutor.runUntilIdle()
    XCTAssertEqual(events.all, [])
    XCTAssertEqual(accepted.count, 0)
    let proceed = await head.wait()
    proceed()
    transport.virtualExecutor.runUntilIdle()
    XCTAssertEqual(events.all, ["a"])
    XCTAssertEqual(accepted.count, 1)
    handle.cancel()
    transport.virtualExecutor.runUntilIdle()
    XCTAssertTrue(transport.streams[0].isCancelled)
  }

  // MARK: Dropping and replacing

  func testDroppingMessages() async {
    let transport = ScriptedTransport(Self.echo)
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        TestInterceptor.make { interceptor in
          interceptor.streamMessages = StreamMessageFunction(
            requestMessageFunction: { message, proceed in
              if message == "b" { proceed.drop() } else { proceed(message) }
            },
            streamResultFunction: { result, proceed in
              if result.message == "c" { proceed(result) } else { proceed.drop() }
            }
          )
        }
      ]
    )
    let results = await client.results(sending: ["a", "b", "c"])
    XCTAssertEqual(transport.streams[0].sentMessages, ["\"a\"", "\"c\""])
    XCTAssertEqual(results, ["headers", "c", "end ok"], "headers and the end cannot be dropped")
  }

  func testAMessageInPlaceOfTheEndAndAnEndInPlaceOfAMessage() async {
    let probe = InterceptorProbe()
    let replacing: @Sendable (String, StreamResult<Text>) -> InterceptorFactory = { what, replacement in
      TestInterceptor.make { interceptor in
        interceptor.streamMessages.streamResultFunction = { result, proceed in
          proceed(result.short == what ? replacement : result)
        }
      }
    }
    let outer = probe.factory("A", levels: [.message])
    let message = ProtocolClient.scripted(
      ScriptedTransport(Self.echo),
      interceptors: [outer, replacing("end ok", .message("more"))]
    )
    let first = await message.results(sending: ["a"])
    XCTAssertEqual(first, ["headers", "a", "more", "end ok"])

    let transport = ScriptedTransport { stream in
      stream.respondStream()
      stream.sendMessage("\"a\"")
      stream.sendMessage("\"b\"")
    }
    let end = ProtocolClient.scripted(
      transport,
      interceptors: [outer, replacing("a", .failed(ConnectError(code: .aborted)))]
    )
    let second = await end.results(sending: [])
    XCTAssertEqual(second, ["headers", "end aborted"])
    XCTAssertTrue(transport.streams[0].isCancelled)
    XCTAssertEqual(probe.events.map(\.short).suffix(2), ["A < headers", "A < end aborted"])
  }

  func testReplacingErrors() async {
    for (script, replacement, expected) in [
      (Code?.none, StreamResult<Text>.failed(ConnectError(code: .dataLoss)), "end data_loss"),
      (.unavailable, .complete(code: .ok, error: nil, trailers: Headers()), "end ok"),
      (.unavailable, .failed(ConnectError(code: .aborted)), "end aborted"),
    ] {
      let client = ProtocolClient.scripted(
        ScriptedTransport { stream in
          stream.respondStream()
          stream.endStream(script)
        },
        interceptors: [
          TestInterceptor.make { interceptor in
            interceptor.streamMessages.streamResultFunction = { result, proceed in
              if case .complete = result { proceed(replacement) } else { proceed(result) }
            }
          }
        ]
      )
      let results = await client.results(sending: [])
      XCTAssertEqual(results, ["headers", expected])
    }
  }

  // MARK: Failing and answering

  func testFailingAndAnsweringAtEachPosition() async {
    for position in 0..<3 {
      for isFailing in [true, false] {
        let probe = InterceptorProbe()
        let transport = ScriptedTransport(Self.echo)
        var factories = ["A", "B", "C"].map { probe.factory($0, levels: [.message]) }
        factories[position] = TestInterceptor.make { interceptor in
          interceptor.streamMessages = StreamMessageFunction(
            requestFunction: { _, proceed in
              if isFailing {
                proceed(.failure(ConnectError(code: .aborted)))
              } else {
                proceed.answer(StreamAnswer(messages: ["1", "2"]))
              }
            },
            requestMessageFunction: { message, proceed in
              XCTFail("a message after its own answer")
              proceed(message)
            },
            streamResultFunction: { result, proceed in
              XCTFail("its own answer")
              proceed(result)
            }
          )
        }
        let client = ProtocolClient.scripted(transport, interceptors: factories)
        let results = await client.results()
        let expected = isFailing ? ["end aborted"] : ["headers", "1", "2", "end ok"]
        XCTAssertEqual(results, expected)
        XCTAssertEqual(transport.streams.count, 0)
        let outside = ["A", "B", "C"].prefix(position)
        XCTAssertEqual(
          probe.events.map(\.short).filter { !$0.contains(">") },
          outside.map { "\($0) head" }
            + expected.flatMap { result in outside.reversed().map { "\($0) < \(result)" } }
        )
      }
    }
  }

  func testAnsweringInAByteHook() async {
    let probe = InterceptorProbe()
    let transport = ScriptedTransport(Self.echo)
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        TestInterceptor.make { interceptor in
          interceptor.streamBytes.requestFunction = { _, proceed in
            proceed.answer(StreamAnswer(messages: [ByteBuffer(string: "\"1\"")]))
          }
        },
        probe.factory("M", levels: [.message]),
      ]
    )
    let results = await client.results(sending: [])
    XCTAssertEqual(results, ["headers", "1", "end ok"])
    XCTAssertEqual(probe.events.map(\.short), ["M head", "M < headers", "M < 1", "M < end ok"])
    XCTAssertEqual(transport.streams.count, 0)
  }

  // MARK: Demand and bounds

  func testNothingIsReadThatNobodyAskedFor() async {
    let probe = InterceptorProbe()
    let transport = ScriptedTransport { stream in
      stream.respondStream()
      for index in 0..<100 { stream.sendMessage("\"\(index)\"") }
    }
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        probe.factory("A", levels: [.message]), probe.factory("B", levels: [.message]),
      ]
    )
    let stream = client.serverStream(.serverStream, "go")
    var iterator = stream.results.makeAsyncIterator()
    for expected in ["headers", "0", "1"] {
      let result = await iterator.next()
      XCTAssertEqual(result?.short, expected)
      transport.virtualExecutor.runUntilIdle()
      XCTAssertEqual(probe.events.last?.short, "A < \(expected)")
    }
    XCTAssertGreaterThan(transport.streams[0].unconsumed, 90 * 6)
  }

  func testWaitingValuesAreBoundedAndPushBackOnTheWire() async {
    let seen = Box(0)
    let transport = ScriptedTransport { stream in
      stream.respondStream()
      for index in 0..<100 { stream.sendMessage("\"\(index)\"") }
    }
    let first = Signal<@Sendable () -> Void>()
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        TestInterceptor.make { interceptor in
          interceptor.streamMessages.streamResultFunction = { result, proceed in
            if seen.increment() == 1 { first.fire { proceed(result) } } else { proceed(result) }
          }
        }
      ]
    ) { $0.limits.maximumWaitingValues = 4 }
    let results = Box<[String]>([])
    let handle = client.serverStream(.serverStream, "go") { results.value = results.value + [$0.short] }
    transport.virtualExecutor.runUntilIdle()
    XCTAssertEqual(seen.value, 4)
    XCTAssertEqual(results.value, [])
    XCTAssertGreaterThan(transport.streams[0].unconsumed, 90 * 6)
    let proceed = await first.wait()
    proceed()
    transport.virtualExecutor.runUntilIdle()
    XCTAssertEqual(results.value.count, 101)
    XCTAssertEqual(transport.streams[0].unconsumed, 0)
    handle.cancel()
  }

  func testWaitingRequestMessagesPushBackOnSend() async {
    let held = Box<[Proceed<StreamDataVerb<Text>>]>([])
    let transport = ScriptedTransport.silent()
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        TestInterceptor.make { interceptor in
          interceptor.streamMessages.requestMessageFunction = { _, proceed in
            held.value += [proceed]
          }
        }
      ]
    ) { $0.limits.maximumWaitingValues = 4 }
    let handle = client.bidirectionalStream(.bidirectional) { _ in }
    let accepted = Box(0)
    for _ in 0..<10 { handle.send("x") { if $0 == nil { _ = accepted.increment() } } }
    transport.virtualExecutor.runUntilIdle()
    XCTAssertEqual(held.value.count, 4)
    XCTAssertEqual(accepted.value, 4)
    handle.cancel()
    transport.virtualExecutor.runUntilIdle()
    held.value = []
  }

  func testAnUnwritableStreamPushesBackOnSend() async {
    let transport = ScriptedTransport { $0.isWritable = false }
    let client = ProtocolClient.scripted(transport)
    let handle = client.bidirectionalStream(.bidirectional) { _ in }
    let accepted = Box(0)
    let large = Text(String(repeating: "x", count: 40_000))
    transport.virtualExecutor.runUntilIdle()
    for _ in 0..<5 { handle.send(large) { if $0 == nil { _ = accepted.increment() } } }
    transport.virtualExecutor.runUntilIdle()
    XCTAssertEqual(accepted.value, 2)
    transport.virtualExecutor.sync { transport.streams[0].becomeWritable() }
    transport.virtualExecutor.runUntilIdle()
    XCTAssertEqual(accepted.value, 5)
    handle.cancel()
  }
}
