import Connect
import ConnectTesting
import XCTest

extension MethodSpec where Input == Text, Output == Text {
  /// A method that may be hedged.
  static let read = TextMethod(
    codablePath: "/test.Text/Read",
    streamType: .unary,
    idempotencyLevel: .noSideEffects
  )
}

/// A unary call that may hedge, and whose attempts are scripted by the test.
struct HedgedCall {
  let transport: ScriptedTransport
  let handle: CallHandle
  let outcomes: Signal<ResponseMessage<Text>>

  /// Makes the call, with hedges every second, and starts the first attempt.
  ///
  /// - Parameter script: Runs for each stream when it starts.
  init(
    _ policy: HedgingPolicy? = HedgingPolicy(maximumAttempts: 3, delay: .seconds(1)),
    method: TextMethod = .read,
    message: Text = "x",
    options: CallOptions = CallOptions(),
    interceptors: [InterceptorFactory] = [],
    timeout: Duration? = nil,
    rules: MethodRules? = nil,
    configure: (inout ProtocolClientConfig) -> Void = { _ in },
    script: @escaping ScriptedTransport.Script = { _ in }
  ) {
    let transport = ScriptedTransport(script)
    if let rules { transport.serviceRules.update { _ in rules } }
    let client = ProtocolClient.scripted(transport, interceptors: interceptors, timeout: timeout) {
      $0.hedging = { _ in policy }
      configure(&$0)
    }
    let outcomes = Signal<ResponseMessage<Text>>()
    self.transport = transport
    self.outcomes = outcomes
    self.handle = client.unary(method, message, options: options) { outcomes.fire($0) }
    transport.virtualExecutor.runUntilIdle()
  }

  /// All attempts so far, the oldest first.
  var attempts: [ScriptedStream] { self.transport.streams }

  func advance(by duration: Duration) {
    self.transport.virtualExecutor.advance(by: duration)
  }

  /// Runs a script on an attempt, counted from 1.
  func attempt(
    _ number: Int,
    file: StaticString = #filePath,
    line: UInt = #line,
    _ script: (ScriptedStream) -> Void
  ) {
    guard number <= self.attempts.count else {
      XCTFail("there is no attempt \(number)", file: file, line: line)
      self.handle.cancel()
      return
    }
    let stream = self.attempts[number - 1]
    self.transport.virtualExecutor.sync { script(stream) }
    self.transport.virtualExecutor.runUntilIdle()
  }

  /// Which attempts were cancelled on the wire, counted from 1.
  var cancelled: [Int] { self.attempts.indices.filter { self.attempts[$0].isCancelled }.map { $0 + 1 } }

  var isOver: Bool { self.outcomes.count > 0 }

  /// Waits for the outcome. Expects that it is delivered once, and that no work continues after it.
  func outcome(file: StaticString = #filePath, line: UInt = #line) async -> ResponseMessage<Text> {
    let response = await self.outcomes.wait()
    self.transport.virtualExecutor.runUntilIdle()
    let attemptCount = self.attempts.count
    XCTAssertEqual(self.transport.virtualExecutor.scheduled, [], file: file, line: line)
    self.advance(by: .seconds(1000))
    XCTAssertEqual(self.attempts.count, attemptCount, file: file, line: line)
    XCTAssertEqual(self.outcomes.count, 0, "completed more than once", file: file, line: line)
    return response
  }
}
