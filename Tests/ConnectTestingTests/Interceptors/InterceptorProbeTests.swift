import Connect
import ConnectTesting
import NIOCore
import XCTest

final class InterceptorProbeTests: XCTestCase {
  private let executor = VirtualExecutor()

  // MARK: Unary

  func testUnaryCallsInOrderWithValues() async {
    let probe = InterceptorProbe()
    let client = NoteTransport(self.executor).client([
      probe.factory("A", metrics: true), probe.factory("B", metrics: true),
    ])
    let response = await client.unary(Note.post, Note("hello"))
    XCTAssertEqual(response.message, Note("hello"))
    XCTAssertEqual(
      probe.events.transcript,
      """
      A message request: hello
      B message request: hello
      A byte request: {"text":"hello"}
      B byte request: {"text":"hello"}
      B byte metrics: attempt 1
      A byte metrics: attempt 1
      B byte response ok: {"text":"hello"}
      A byte response ok: {"text":"hello"}
      B message response ok: hello
      A message response ok: hello
      """
    )
    XCTAssertEqual(
      probe.events.values(HTTPRequest<Note>.self).map(\.message),
      [Note("hello"), Note("hello")]
    )
    XCTAssertEqual(probe.events.values(HTTPMetrics.self).map(\.attempt), [1, 1])
    probe.removeAll()
    XCTAssertEqual(probe.events.count, 0)
  }

  func testErrorsAndLevels() async {
    let probe = InterceptorProbe()
    let client = NoteTransport(self.executor, errors: [.notFound]).client([
      probe.factory("A", levels: [.message]), probe.factory("B", levels: [.byte]),
      probe.factory("C", levels: []),
    ])
    _ = await client.unary(Note.post, Note("hello"))
    XCTAssertEqual(
      probe.events.outline,
      ["A message request", "B byte request", "B byte response not_found", "A message response not_found"]
    )
    XCTAssertEqual(probe.events.last?.description, "A message response not_found: sorry")
    XCTAssertNil(probe.events.last?.time)
  }

  func testTheAsyncFormAmongClosures() async {
    let probe = InterceptorProbe()
    let client = NoteTransport(self.executor, errors: [.unavailable]).client([
      probe.factory("A", levels: [.async]), probe.factory("B", levels: [.message]),
      ScriptedInterceptor.factory(.retry(1)), probe.factory("C", levels: [.async]),
    ])
    _ = await client.unary(Note.post, Note("hello"))
    XCTAssertEqual(
      probe.events.filter { $0.interceptor != "A" || $0.hook == .request }.transcript,
      """
      A async request: hello
      B message request: hello
      C async request: hello
      C async response unavailable: sorry
      A async request: hello
      B message request: hello
      C async request: hello
      C async response ok: hello
      B message response ok: hello
      """
    )
    XCTAssertEqual(
      probe.events.filter { $0.interceptor == "A" && $0.hook == .response }.map(\.description).sorted(),
      // `next` of the first attempt has thrown.
      ["A async response canceled: the call was cancelled", "A async response ok: hello"]
    )
  }

  func testTimes() async throws {
    let probe = InterceptorProbe(executor: self.executor)
    let client = NoteTransport(self.executor).client([
      probe.factory("A", levels: [.message]),
      ScriptedInterceptor.factory(.delay(.seconds(2), on: self.executor)),
      ScriptedInterceptor.factory(.delay(.seconds(3), at: .response, on: self.executor)),
      probe.factory("B", levels: [.message]),
    ])
    _ = try await self.executor.lettingTimePass { await client.unary(Note.post, Note("hi")) }
    XCTAssertEqual(
      probe.events.timeline,
      """
      0.0 seconds A message request: hi
      2.0 seconds B message request: hi
      2.0 seconds B message response ok: hi
      5.0 seconds A message response ok: hi
      """
    )
  }

  // MARK: Streams

  private func chat(_ client: ProtocolClient) async throws -> [Note] {
    let stream = client.bidirectionalStream(Note.chat)
    for text in ["one", "two"] { try await stream.send(Note(text)) }
    stream.finish()
    var received: [Note] = []
    for try await message in stream.messages { received.append(message) }
    return received
  }

  func testStreams() async throws {
    let probe = InterceptorProbe()
    let client = NoteTransport(self.executor).client([
      probe.factory("A", metrics: true), probe.factory("B", levels: [.async]),
    ])
    let received = try await self.chat(client)
    XCTAssertEqual(received, [Note("one"), Note("two")])
    XCTAssertEqual(
      probe.events.filter { $0.level == .message }.transcript,
      """
      A message request
      A message request message: one
      A message request message: two
      A message result headers
      A message result message: one
      A message result message: two
      A message result end ok
      """
    )
    XCTAssertEqual(
      probe.events.filter { $0.level == .async }.transcript,
      """
      B async request
      B async request message: one
      B async request message: two
      B async result headers
      B async result message: one
      B async result message: two
      B async result end ok
      """
    )
    XCTAssertEqual(
      probe.events.filter { $0.level == .byte && $0.hook != .metrics }.outline,
      [
        "A byte request", "A byte request message", "A byte request message", "A byte result headers",
        "A byte result message", "A byte result message", "A byte result end ok",
      ]
    )
  }

  func testAStreamThatFails() async {
    let probe = InterceptorProbe()
    let client = NoteTransport(self.executor).client([
      probe.factory("A", levels: [.message, .async]),
      ScriptedInterceptor.factory(.fail(ConnectError(code: .aborted, message: "no"))),
    ])
    do {
      _ = try await self.chat(client)
      XCTFail("no error")
    } catch {
      // Of the message that could not be sent, or of the stream.
      XCTAssertTrue(error is ConnectError, "\(error)")
    }
    try? await self.executor.wait { probe.events.contains { $0.level == .async && $0.hook == .result } }
    XCTAssertEqual(
      probe.events.filter { $0.hook == .result }.transcript,
      """
      A message result end aborted: no
      A async result end aborted: no
      """
    )
  }

  // MARK: Descriptions

  func testDescriptionsStayOnOneLine() {
    func line(_ value: some Sendable) -> String {
      HookEvent(interceptor: "A", level: .byte, hook: .requestMessage, value: value).description
    }
    XCTAssertEqual(line(ByteBuffer(string: "text")), "A byte request message: text")
    XCTAssertEqual(line(ByteBuffer(bytes: [0xff, 0x00])), "A byte request message: 2 bytes")
    XCTAssertEqual(line(ByteBuffer(string: "a\nb")), "A byte request message: 3 bytes")
    XCTAssertEqual(line(ByteBuffer()), "A byte request message")
    XCTAssertEqual(line(Note("a\n b")), "A byte request message: a b")
    XCTAssertEqual(
      line(Note(String(repeating: "x", count: 300))).count,
      "A byte request message: ".count + 201
    )
  }
}
