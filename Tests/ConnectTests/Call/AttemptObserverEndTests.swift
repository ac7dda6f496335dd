import ConnectTesting
import NIOCore
import XCTest

@testable import Connect

/// Observers of attempts that end the call.
final class AttemptObserverEndTests: XCTestCase {
  private struct Observer: Interceptor {
    let events: Events
    let onEvent: @Sendable () -> Void

    func callFunction(_ method: MethodInfo) -> CallFunction {
      CallFunction(endFunction: { outcome in self.events.add("end \(outcome.code)") })
    }

    func attemptFunction() -> AttemptFunction? {
      { event in
        switch event {
        case .started(let start): self.events.add("start \(start.kind)")
        case .ended(let record): self.events.add("attempt \(record.kind) \(record.code)")
        }
        self.onEvent()
      }
    }
  }

  private static func observing(in events: Events, _ onEvent: @escaping @Sendable () -> Void)
    -> InterceptorFactory
  {
    { _ in Observer(events: events, onEvent: onEvent) }
  }

  private static let refused: ScriptedTransport.Script = {
    $0.fail(ConnectError(code: .unavailable, message: "refused"), isUnprocessed: true)
  }

  /// In each of its events: nothing is left on the wire, the call ends once, and hooks for metrics hear of all attempts.
  func testOfUnaryCalls() async {
    let failing: ScriptedTransport.Script = { $0.reply(.unavailable) }
    let answer: ScriptedTransport.Script = { $0.reply("\"y\"") }
    for name in ["transparent retry", "another protocol", "hedge"] {
      for number in 1...4 {
        let events = Events()
        let cancellation = CallCancellation()
        let count = Box(0)
        let cancelling = Self.observing(in: events) {
          if count.increment() == number { cancellation.cancel() }
        }
        let measuring = TestInterceptor.make { interceptor in
          interceptor.unaryBytes.responseMetricsFunction = { metrics, proceed in
            events.add("metrics")
            proceed(metrics)
          }
        }
        let transport =
          name == "another protocol"
          ? ProtocolPeer(["grpc": .otherVersion]).transport
          : ScriptedTransport.replying([name == "hedge" ? failing : Self.refused, answer])
        let client = ProtocolClient.scripted(transport, interceptors: [cancelling, measuring]) {
          if name == "another protocol" { $0.networkProtocol = .automatic() }
          if name == "hedge" {
            $0.hedging = { _ in HedgingPolicy(delay: .seconds(1), allowsSideEffects: true) }
          }
        }
        var options = CallOptions()
        options.context.cancellation = cancellation
        let outcome = await client.unary(.unary, "x", options: options).code
        transport.virtualExecutor.runUntilIdle()
        let test = "\(name) \(number): \(events.all)"
        XCTAssertEqual(outcome, .canceled, test)
        XCTAssertEqual(events.all.last, "end canceled", test)
        let starts = (number + 1) / 2
        XCTAssertEqual(events.all.count { $0.hasPrefix("start") }, starts, test)
        XCTAssertEqual(events.all.count { $0.hasPrefix("attempt") }, starts, test)
        // What is sent again counts as one attempt.
        XCTAssertEqual(events.all.count { $0 == "metrics" }, name == "hedge" ? starts : 1, test)
        XCTAssertEqual(transport.streams.count, number / 2, test)
        XCTAssertTrue(transport.streams.allSatisfy { $0.isOver || $0.isCancelled }, test)
        XCTAssertEqual(transport.virtualExecutor.scheduled, [], test)
      }
    }
  }

  private static let streamEnds: [(name: String, code: Code, script: ScriptedTransport.Script)] = [
    ("reset", .unavailable, { $0.fail(ConnectError(code: .unavailable)) }),
    // The end is in the body, and the body goes on: a message that is compressed, and nothing says how.
    ("early end", .internalError, { $0.send(ByteBuffer(bytes: [1, 0, 0, 0, 1, 0])) }),
    ("end", .ok, { $0.endStream() }),
    ("late error", .aborted, { $0.endStream(.aborted) }),
    ("cancellation", .canceled, { _ in }),
  ]

  func testOfStreams() {
    for (name, code, script) in Self.streamEnds {
      for number in 1...2 {
        let events = Events()
        let cancellation = CallCancellation()
        let count = Box(0)
        let cancelling = Self.observing(in: events) {
          if count.increment() == number { cancellation.cancel() }
        }
        let transport = ScriptedTransport({ _ in }, executor: VirtualExecutor())
        let executor = transport.virtualExecutor
        let client = ProtocolClient.scripted(transport, interceptors: [cancelling])
        var options = CallOptions()
        options.context.cancellation = cancellation
        let results = Events()
        let handle = client.bidirectionalStream(.bidirectional, options: options) { results.add($0.short) }
        executor.runUntilIdle()
        if let stream = transport.streams.first {
          executor.sync {
            stream.respondStream()
            stream.sendMessage("\"a\"")
          }
          executor.runUntilIdle()
          executor.sync { script(stream) }
          executor.runUntilIdle()
        }
        if name == "cancellation" { handle.cancel() }
        executor.runUntilIdle()
        let test = "\(name) \(number): \(events.all)"
        let end = number == 1 ? Code.canceled : code
        XCTAssertEqual(events.all, ["start original", "attempt original \(end)", "end canceled"], test)
        XCTAssertEqual(results.all.last, "end canceled", test)
        XCTAssertEqual(results.all.count { $0.hasPrefix("end") }, 1, test)
        XCTAssertEqual(transport.streams.count, number - 1, test)
        XCTAssertTrue(transport.streams.allSatisfy { $0.isOver || $0.isCancelled }, test)
        XCTAssertEqual(executor.scheduled, [], test)
      }
    }
  }

  /// Tells of its end.
  private final class Token: Sendable {
    let releases: Box<Int>
    init(_ releases: Box<Int>) { self.releases = releases }
    deinit { _ = self.releases.increment() }
  }

  /// Ends the call before it is asked for what observes attempts.
  private struct EarlyObserver: Interceptor {
    let token: Token
    let cancellation: CallCancellation

    func callFunction(_ method: MethodInfo) -> CallFunction {
      self.cancellation.cancel()
      return CallFunction()
    }

    func attemptFunction() -> AttemptFunction? { { _ in withExtendedLifetime(self.token) {} } }
  }

  func testAnObserverOfACallThatIsOverIsReleased() {
    let releases = Box(0)
    let cancellation = CallCancellation()
    let transport = ScriptedTransport({ _ in }, executor: VirtualExecutor())
    let early: InterceptorFactory = { _ in
      EarlyObserver(token: Token(releases), cancellation: cancellation)
    }
    let client = ProtocolClient.scripted(transport, interceptors: [early])
    var options = CallOptions()
    options.context.cancellation = cancellation
    let codes = Events()
    let handle = client.unary(.unary, "x", options: options) { codes.add("\($0.code)") }
    transport.virtualExecutor.runUntilIdle()
    XCTAssertEqual(codes.all, ["canceled"])
    withExtendedLifetime(handle) { XCTAssertEqual(releases.value, 1) }
  }
}
