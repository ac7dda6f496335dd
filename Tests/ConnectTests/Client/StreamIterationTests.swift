import Connect
import ConnectTesting
import XCTest

/// What becomes of a stream whose iteration is left, or repeated.
final class StreamIterationTests: XCTestCase {
  /// Sends one message and goes on for ever.
  private static let endless: ScriptedTransport.Script = { stream in
    stream.onWrite = { stream, _ in
      stream.respondStream()
      stream.sendMessage("\"1\"")
    }
  }

  private static let echoing: ScriptedTransport.Script = { stream in
    stream.onFinish = { stream in
      stream.respondStream()
      for message in stream.sentMessages { stream.sendMessage(message) }
      stream.endStream()
    }
  }

  /// Leaving the loop cancels the call, although the stream has a name and the function goes on.
  func testLeavingALoopCancelsANamedStream() async throws {
    let transport = ScriptedTransport(Self.endless)
    let client = ProtocolClient.scripted(transport)

    let messages = client.serverStream(.serverStream, "a")
    for try await message in messages.messages {
      XCTAssertEqual(message, "1")
      break
    }
    transport.virtualExecutor.runUntilIdle()
    XCTAssertTrue(transport.streams[0].isCancelled)

    let results = client.serverStream(.serverStream, "a")
    for await _ in results.results { break }
    transport.virtualExecutor.runUntilIdle()
    XCTAssertTrue(transport.streams[1].isCancelled)

    let chat = client.bidirectionalStream(.bidirectional)
    try await chat.send("a")
    for try await _ in chat.messages { break }
    transport.virtualExecutor.runUntilIdle()
    XCTAssertTrue(transport.streams[2].isCancelled)
    do {
      try await chat.send("b")
      XCTFail("a message was sent on a cancelled stream")
    } catch {
      XCTAssertEqual(error.code, .failedPrecondition)
    }
    withExtendedLifetime((messages, results, chat)) {}
  }

  func testAnErrorThrownInTheLoopCancelsToo() async {
    struct Stop: Error {}
    let transport = ScriptedTransport(Self.endless)
    let stream = ProtocolClient.scripted(transport).serverStream(.serverStream, "a")
    do {
      for try await _ in stream.messages { throw Stop() }
      XCTFail("the loop ended")
    } catch {
      XCTAssertTrue(error is Stop)
    }
    transport.virtualExecutor.runUntilIdle()
    XCTAssertTrue(transport.streams[0].isCancelled)
    withExtendedLifetime(stream) {}
  }

  func testIteratingAgainIsAnError() async throws {
    let client = ProtocolClient.scripted(ScriptedTransport(Self.echoing))
    let stream = client.serverStream(.serverStream, "a")
    var received: [Text] = []
    for try await message in stream.messages { received.append(message) }
    XCTAssertEqual(received, ["a"])
    do {
      for try await _ in stream.messages { XCTFail("a message came again") }
      XCTFail("the second iteration ended well")
    } catch let error as ConnectError {
      XCTAssertEqual(error.code, .failedPrecondition)
      XCTAssertEqual(
        error.message,
        "the stream of /test.Text/ServerStream was iterated before; a stream can be iterated once"
      )
    }
    var results: [String] = []
    for await result in stream.results { results.append(result.short) }
    XCTAssertEqual(results, ["end failed_precondition"])
  }

  /// A second iteration beside the first neither takes its results nor cancels it.
  func testIteratingTwiceAtOnceLeavesTheFirstAlone() async {
    let client = ProtocolClient.scripted(ScriptedTransport(Self.echoing))
    let stream = client.serverStream(.serverStream, "a")
    var first = stream.results.makeAsyncIterator()
    var results: [String] = []
    if let result = await first.next() { results.append(result.short) }
    var others: [String] = []
    for await result in stream.results { others.append(result.short) }
    while let result = await first.next() { results.append(result.short) }
    XCTAssertEqual(others, ["end failed_precondition"])
    XCTAssertEqual(results, ["headers", "a", "end ok"])
  }

  // MARK: Client streams

  func testAllWhoWaitForTheResponseOfAClientStreamGetIt() async throws {
    let transport = ScriptedTransport { stream in
      stream.onFinish = { stream in
        stream.respondStream()
        stream.sendMessage("\"\(stream.sentMessages.count)\"")
        stream.endStream()
      }
    }
    let stream = ProtocolClient.scripted(transport).clientStream(.clientStream)
    try await stream.send("a")
    try await stream.send("b")
    async let first = stream.closeAndReceive()
    async let second = stream.closeAndReceive()
    let responses = await [first, second]
    XCTAssertEqual(responses.map(\.message), ["2", "2"])
    let third = await stream.closeAndReceive()
    XCTAssertEqual(third.message, "2")
  }

  func testAllWhoWaitForTheResponseOfAClientStreamThatFailsAreTold() async {
    let transport = ScriptedTransport { stream in
      stream.onFinish = { stream in
        stream.respondStream()
        stream.sendMessage("\"1\"")
        stream.sendMessage("\"2\"")
      }
    }
    let stream = ProtocolClient.scripted(transport).clientStream(.clientStream)
    async let first = stream.closeAndReceive()
    async let second = stream.closeAndReceive()
    let responses = await [first, second]
    XCTAssertEqual(responses.map(\.code), [.unimplemented, .unimplemented])
    transport.virtualExecutor.runUntilIdle()
    XCTAssertTrue(transport.streams[0].isCancelled)
  }

  func testCancellingOneWhoWaitsCancelsTheClientStream() async {
    let transport = ScriptedTransport.silent()
    let stream = ProtocolClient.scripted(transport).clientStream(.clientStream)
    let waiting = Task { await stream.closeAndReceive() }
    waiting.cancel()
    let response = await waiting.value
    XCTAssertEqual(response.code, .canceled)
    let other = await stream.closeAndReceive()
    XCTAssertEqual(other.code, .canceled)
  }
}
