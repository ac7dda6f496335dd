import Connect
import ConnectTesting
import NIOCore
import XCTest

/// What the server certainly did not process is sent again, once, unseen by hooks.
final class TransparentRetryTests: XCTestCase {
  private static let refused: ScriptedTransport.Script = {
    $0.fail(ConnectError(code: .unavailable, message: "refused"), isUnprocessed: true)
  }

  func testUnaryOnceUnseenByHooks() async {
    let probe = InterceptorProbe()
    let transport = ScriptedTransport.replying([Self.refused, { $0.reply($0.sentMessage) }])
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [probe.factory("A")]
    )
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(response.message, "x")
    XCTAssertEqual(transport.streams.count, 2)
    XCTAssertEqual(
      probe.events.outline,
      ["A message request", "A byte request", "A byte response ok", "A message response ok"]
    )
  }

  func testNotASecondTime() async {
    let transport = ScriptedTransport(Self.refused)
    let response = await ProtocolClient.scripted(transport).unary(.unary, "x")
    XCTAssertEqual(response.error?.message, "refused")
    XCTAssertEqual(transport.streams.count, 2)
  }

  func testOncePerCallNotPerAttempt() async {
    let transport = ScriptedTransport(Self.refused)
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        TestInterceptor.make { interceptor in
          interceptor.unaryBytes.responseFunction = { response, proceed in
            if response.error != nil { proceed.retry() } else { proceed(response) }
          }
        }
      ]
    )
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(response.code, .unavailable)
    XCTAssertEqual(transport.streams.count, 5)
  }

  func testNotWhenProcessedOrAfterTheResponseBegan() async {
    let processed = ScriptedTransport { $0.fail(ConnectError(code: .unavailable)) }
    _ = await ProtocolClient.scripted(processed).unary(.unary, "x")
    XCTAssertEqual(processed.streams.count, 1)
    let begun = ScriptedTransport { stream in
      stream.respond(headers: ["content-type": ["application/json"]])
      stream.fail(ConnectError(code: .unavailable), isUnprocessed: true)
    }
    let response = await ProtocolClient.scripted(begun).unary(.unary, "x")
    XCTAssertEqual(response.code, .unavailable)
    XCTAssertEqual(begun.streams.count, 1)
  }

  func testARequestStreamIsSentAgain() async {
    let transport = ScriptedTransport.replying([
      { $0.onFinish = { $0.fail(ConnectError(code: .unavailable), isUnprocessed: true) } },
      StreamChainTests.echo,
    ])
    let stream = ProtocolClient.scripted(transport).bidirectionalStream(.bidirectional)
    try? await stream.send("a")
    try? await stream.send("b")
    stream.finish()
    var results: [String] = []
    for await result in stream.results { results.append(result.short) }
    XCTAssertEqual(results, ["headers", "a", "b", "end ok"])
    XCTAssertEqual(transport.streams.map(\.sentMessages), [["\"a\"", "\"b\""], ["\"a\"", "\"b\""]])
  }

  func testTheOnlyMessageIsSentAgainWhateverItsSize() async {
    let transport = ScriptedTransport.replying([
      { $0.onFinish = { $0.fail(ConnectError(code: .unavailable), isUnprocessed: true) } },
      StreamChainTests.echo,
    ])
    let text = Text(String(repeating: "x", count: 500_000))
    let stream = ProtocolClient.scripted(transport).serverStream(.serverStream, text)
    var messages: [Text] = []
    for await case .message(let message) in stream.results { messages.append(message) }
    XCTAssertEqual(messages, [text])
    XCTAssertEqual(transport.streams.count, 2)
  }

  func testNotWhenMoreWasSentThanIsKept() async {
    let transport = ScriptedTransport.replying([
      { $0.onFinish = { $0.fail(ConnectError(code: .unavailable), isUnprocessed: true) } },
      StreamChainTests.echo,
    ])
    let stream = ProtocolClient.scripted(transport).bidirectionalStream(.bidirectional)
    for _ in 0..<3 { try? await stream.send(Text(String(repeating: "x", count: 40_000))) }
    stream.finish()
    var results: [String] = []
    for await result in stream.results { results.append(result.short) }
    XCTAssertEqual(results, ["end unavailable"])
    XCTAssertEqual(transport.streams.count, 1)
  }
}
