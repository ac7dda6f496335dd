import Connect
import ConnectTesting
import XCTest

/// A stream in the callback form. The test drives its caller and its server step by step.
struct SteppedStream {
  let transport: ScriptedTransport
  let handle: StreamHandle<Text, Text>
  private let received: Events
  private let answered: Events

  /// Starts the stream, and sends its head.
  ///
  /// - Parameters:
  ///   - script: Runs for each stream of the transport when it starts.
  ///   - onResult: Called with a short form of each result, after the result was recorded.
  init(
    interceptors: [InterceptorFactory] = [],
    demand: Int = .max,
    timeout: Duration? = nil,
    script: @escaping ScriptedTransport.Script = { _ in },
    configure: (inout ProtocolClientConfig) -> Void = { _ in },
    onResult: @escaping @Sendable (String) -> Void = { _ in }
  ) {
    let transport = ScriptedTransport(script, executor: VirtualExecutor())
    let client = ProtocolClient.scripted(
      transport,
      interceptors: interceptors,
      timeout: timeout,
      configure: configure
    )
    let received = Events()
    self.transport = transport
    self.received = received
    self.answered = Events()
    self.handle = client.bidirectionalStream(.bidirectional, demand: demand) { result in
      received.add(result.short)
      onResult(result.short)
    }
    transport.virtualExecutor.runUntilIdle()
  }

  var executor: VirtualExecutor { self.transport.virtualExecutor }
  /// All attempts so far, the oldest first.
  var attempts: [ScriptedStream] { self.transport.streams }

  /// The results that the caller has received, in order.
  var results: [String] { self.received.all }
  /// The outcomes of sent messages, in order: `a sent`, or `a failed_precondition`.
  var answers: [String] { self.answered.all }
  /// The messages that the last attempt has written.
  var written: [String] {
    (self.attempts.last?.sentMessages ?? []).map { String($0.dropFirst().dropLast()) }
  }

  // MARK: The caller

  func send(_ messages: String...) {
    for message in messages {
      self.handle.send(Text(message)) { [answered] error in
        answered.add("\(message.prefix(8)) \(error.map { "\($0.code)" } ?? "sent")")
      }
    }
    self.executor.runUntilIdle()
  }

  func finish() {
    self.handle.finish()
    self.executor.runUntilIdle()
  }

  func request(_ count: Int) {
    self.handle.request(count)
    self.executor.runUntilIdle()
  }

  func cancel() {
    self.handle.cancel()
    self.executor.runUntilIdle()
  }

  // MARK: The server

  /// Runs a script on the last attempt.
  func server(
    file: StaticString = #filePath,
    line: UInt = #line,
    _ script: (ScriptedStream) -> Void
  ) {
    guard let stream = self.attempts.last else {
      XCTFail("nothing has gone to the network", file: file, line: line)
      return
    }
    self.executor.sync { script(stream) }
    self.executor.runUntilIdle()
  }

  /// Sends messages from the server on the last attempt.
  func reply(_ messages: String..., file: StaticString = #filePath, line: UInt = #line) {
    self.server(file: file, line: line) { stream in
      for message in messages { stream.sendMessage("\"\(message)\"") }
    }
  }

  // MARK: The end

  /// Expects that the caller has received exactly these results, the last of which is the end. Expects that no work
  /// continues.
  func assertEnded(
    _ expected: [String],
    _ what: @autoclosure () -> String = "",
    file: StaticString = #filePath,
    line: UInt = #line
  ) {
    XCTAssertEqual(self.results, expected, what(), file: file, line: line)
    XCTAssertEqual(self.executor.scheduled, [], what(), file: file, line: line)
    XCTAssertTrue(self.attempts.allSatisfy(\.isOver), what(), file: file, line: line)
    let attemptCount = self.attempts.count
    self.handle.cancel()
    self.executor.advance(by: .seconds(1000))
    XCTAssertEqual(self.results, expected, what(), file: file, line: line)
    XCTAssertEqual(self.attempts.count, attemptCount, what(), file: file, line: line)
  }
}
