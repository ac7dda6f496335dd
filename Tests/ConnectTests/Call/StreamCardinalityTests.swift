import Connect
import ConnectTesting
import XCTest

/// How many messages a stream may have in the direction in which it has one.
final class StreamCardinalityTests: XCTestCase {
  private struct Single {
    var messages: [String]
    var code: Code?
    var interceptors: [InterceptorFactory] = []
    var expected: String
  }

  private static func describe(_ response: ResponseMessage<Text>) -> String {
    switch response.result {
    case .success(let message): "ok \(message.text)"
    case .failure(let error): "\(error.code)"
    }
  }

  /// The response of a client stream is one message, counted behind all hooks.
  func testTheResponseOfAClientStream() async {
    let dropping = TestInterceptor.make { interceptor in
      interceptor.streamMessages.streamResultFunction = { result, proceed in
        if result.short == "drop" { proceed.drop() } else { proceed(result) }
      }
    }
    let adding = TestInterceptor.make { interceptor in
      interceptor.streamMessages.streamResultFunction = { result, proceed in
        if case .complete(.ok, _, _) = result { proceed(.message("added")) } else { proceed(result) }
      }
    }
    for single in [
      Single(messages: ["1"], expected: "ok 1"),
      Single(messages: [], expected: "unimplemented"),
      Single(messages: ["1", "2"], expected: "unimplemented"),
      Single(messages: [], code: .aborted, expected: "aborted"),
      Single(messages: ["1"], code: .aborted, expected: "aborted"),
      Single(messages: ["1", "2"], code: .aborted, expected: "unimplemented"),
      Single(messages: ["1", "drop"], interceptors: [dropping], expected: "ok 1"),
      Single(messages: ["drop"], interceptors: [dropping], expected: "unimplemented"),
      Single(messages: [], interceptors: [adding], expected: "ok added"),
      Single(messages: ["1"], interceptors: [adding], expected: "unimplemented"),
    ] {
      let transport = ScriptedTransport { stream in
        stream.onFinish = { stream in
          stream.respondStream()
          for message in single.messages { stream.sendMessage("\"\(message)\"") }
          stream.endStream(single.code)
        }
      }
      let client = ProtocolClient.scripted(transport, interceptors: single.interceptors)
      let responses = Signal<ResponseMessage<Text>>()
      let handle = client.clientStream(.clientStream) { responses.fire($0) }
      handle.send("a")
      handle.finish()
      let response = await responses.wait()
      XCTAssertEqual(Self.describe(response), single.expected, "\(single.messages)")
      transport.virtualExecutor.advance(by: .seconds(1000))
      XCTAssertEqual(responses.count, 0, "\(single.messages)")
      let stream = client.clientStream(.clientStream)
      try? await stream.send("a")
      let closed = await stream.closeAndReceive()
      XCTAssertEqual(Self.describe(closed), single.expected, "\(single.messages)")
      XCTAssertEqual(transport.streams.map(\.sentMessages), [["\"a\""], ["\"a\""]])
    }
  }

  /// A second message is the end, whatever else the server would send.
  func testASecondMessageOfAClientStreamGivesItUp() async {
    let transport = ScriptedTransport { stream in
      stream.respondStream(headers: ["x-a": ["1"]])
      stream.sendMessage("\"1\"")
      stream.sendMessage("\"2\"")
    }
    let client = ProtocolClient.scripted(transport)
    let responses = Signal<ResponseMessage<Text>>()
    let handle = client.clientStream(.clientStream) { responses.fire($0) }
    let response = await responses.wait()
    transport.virtualExecutor.runUntilIdle()
    XCTAssertEqual(response.code, .unimplemented)
    XCTAssertEqual(response.error?.metadata["x-a"], ["1"])
    XCTAssertEqual(transport.streams[0].calls, ["cancel"])
    let codes = Signal<Code?>()
    handle.send("late") { codes.fire($0?.code) }
    let code = await codes.wait()
    XCTAssertEqual(code, .failedPrecondition)
    XCTAssertEqual(responses.count, 0)
  }

  /// The request of a server stream is one message and the half-close; its response may have any number.
  func testTheRequestOfAServerStream() {
    for count in [0, 1, 3] {
      let transport = ScriptedTransport(
        { stream in
          stream.onFinish = { stream in
            stream.respondStream()
            for index in 0..<count { stream.sendMessage("\"\(index)\"") }
            stream.endStream()
          }
        },
        executor: VirtualExecutor()
      )
      let results = Events()
      let handle = ProtocolClient.scripted(transport).serverStream(.serverStream, "a") {
        results.add($0.short)
      }
      let codes = Box<[Code?]>([])
      handle.send("b") { codes.value = codes.value + [$0?.code] }
      transport.virtualExecutor.runUntilIdle()
      XCTAssertEqual(codes.value, [.failedPrecondition])
      XCTAssertEqual(transport.streams[0].sentMessages, ["\"a\""])
      XCTAssertEqual(transport.streams[0].calls, ["write 8", "finish"])
      XCTAssertEqual(results.all, ["headers"] + (0..<count).map { "\($0)" } + ["end ok"])
    }
  }
}
