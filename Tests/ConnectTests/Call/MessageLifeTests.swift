import Connect
import ConnectTesting
import XCTest

/// How long a call keeps messages, and messages that come back into the call as they go away.
final class MessageLifeTests: XCTestCase {
  /// A message that says when it goes away.
  private final class Note: Codable, Sendable {
    static let onDeinit = Box<(@Sendable (String) -> Void)?>(nil)

    let text: String

    init(_ text: String) { self.text = text }

    deinit { Self.onDeinit.value?(self.text) }

    init(from decoder: any Decoder) throws {
      self.text = try decoder.singleValueContainer().decode(String.self)
    }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      try container.encode(self.text)
    }
  }

  private typealias NoteResultHook = @Sendable (StreamResult<Note>, Proceed<StreamResultVerb<Note>>) -> Void
  private typealias NoteHook = @Sendable (Note, Proceed<StreamDataVerb<Note>>) -> Void

  /// The hooks of streams of notes.
  private struct NoteInterceptor: Interceptor {
    var onMessage: NoteHook?
    var onResult: NoteResultHook?

    func streamMessageFunction<Input, Output>(
      _ method: MethodSpec<Input, Output>
    ) -> StreamMessageFunction<Input, Output> {
      var hooks = StreamMessageFunction<Note, Note>()
      hooks.requestMessageFunction = self.onMessage
      hooks.streamResultFunction = self.onResult
      return (hooks as Any) as? StreamMessageFunction<Input, Output> ?? StreamMessageFunction()
    }
  }

  private static let notes = MethodSpec<Note, Note>(
    codablePath: "/test.Note/Notes",
    streamType: .bidirectionalStream
  )

  private struct Notes {
    let transport: ScriptedTransport
    let handle: StreamHandle<Note, Note>
    let ends = Box(0)

    init(_ interceptor: NoteInterceptor) {
      let transport = ScriptedTransport({ _ in }, executor: VirtualExecutor())
      self.transport = transport
      self.handle = ProtocolClient.scripted(transport, interceptors: [{ _ in interceptor }])
        .bidirectionalStream(MessageLifeTests.notes) { [ends = self.ends] result in
          if case .complete = result { _ = ends.increment() }
        }
      transport.virtualExecutor.runUntilIdle()
    }

    func server(_ script: (ScriptedStream) -> Void) {
      guard let stream = self.transport.streams.last else { return XCTFail("nothing was sent") }
      self.transport.virtualExecutor.sync { script(stream) }
      self.transport.virtualExecutor.runUntilIdle()
    }
  }

  override func tearDown() {
    Note.onDeinit.value = nil
  }

  /// What is kept to be sent again goes away with the end of the call, also if the caller keeps the call.
  func testSentMessagesGoAwayWithTheEnd() {
    let lives = Lives()
    let notes = Notes(NoteInterceptor(onResult: { $1($0) }))
    do {
      let note = Note("a")
      lives.add(note, "a")
      notes.handle.send(note) { _ in }
    }
    notes.transport.virtualExecutor.runUntilIdle()
    XCTAssertEqual(lives.names, ["a"], "kept for another attempt")
    notes.server {
      $0.respondStream()
      $0.endStream()
    }
    XCTAssertEqual(notes.ends.value, 1)
    XCTAssertEqual(lives.names, [])
    withExtendedLifetime(notes) {}
  }

  /// Results that are thrown away behind an end may end the call as they go.
  func testResultsThatCancelTheCallAsTheyGoAway() {
    let kept = Box<[Proceed<StreamResultVerb<Note>>]>([])
    let notes = Notes(
      NoteInterceptor(onResult: { result, proceed in
        if case .message = result, !proceed.isOver { kept.value += [proceed] } else { proceed(result) }
      })
    )
    let gone = Events()
    Note.onDeinit.value = { text in
      gone.add(text)
      notes.handle.cancel()
    }
    notes.server {
      $0.respondStream()
      for text in ["a", "b", "c"] { $0.sendMessage("\"\(text)\"") }
    }
    XCTAssertEqual(kept.value.count, 3)
    notes.transport.virtualExecutor.sync {
      kept.value.first?(.complete(code: .ok, error: nil, trailers: Headers()))
    }
    notes.transport.virtualExecutor.runUntilIdle()
    XCTAssertEqual(Set(gone.all), ["a", "b", "c"])
    XCTAssertEqual(notes.ends.value, 1)
  }

  /// So may request messages that a hook drops or replaces.
  func testRequestMessagesThatCancelTheCallAsTheyGoAway() {
    for drops in [true, false] {
      let kept = Box<[Proceed<StreamDataVerb<Note>>]>([])
      let notes = Notes(NoteInterceptor(onMessage: { _, proceed in kept.value += [proceed] }))
      let gone = Events()
      Note.onDeinit.value = { text in
        gone.add(text)
        notes.handle.cancel()
      }
      notes.handle.send(Note("a")) { _ in }
      notes.handle.send(Note("b")) { _ in }
      notes.transport.virtualExecutor.runUntilIdle()
      XCTAssertEqual(kept.value.count, 2)
      notes.transport.virtualExecutor.sync {
        if drops { kept.value.first?.drop() } else { kept.value.first?(Note("other")) }
      }
      notes.transport.virtualExecutor.runUntilIdle()
      XCTAssertEqual(gone.all.prefix(1), ["a"])
      XCTAssertTrue(gone.all.contains("b"))
      XCTAssertEqual(notes.ends.value, 1)
      Note.onDeinit.value = nil
    }
  }
}
