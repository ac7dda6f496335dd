import Connect
import ConnectTesting
import NIOCore
import XCTest

/// Calls that wait for the service's rules before they begin.
final class ServiceRulesWaitTests: XCTestCase {
  private func transport(_ script: @escaping ScriptedTransport.Script = { $0.reply("\"x\"") })
    -> ScriptedTransport
  {
    let transport = ScriptedTransport(script)
    transport.serviceRules.expectUpdate()
    return transport
  }

  private func run(_ transport: ScriptedTransport, _ work: (ServiceRules) -> Void) {
    transport.virtualExecutor.sync { work(transport.serviceRules) }
    transport.virtualExecutor.runUntilIdle()
  }

  private func noting(_ events: Events) -> InterceptorFactory {
    TestInterceptor.make { interceptor in
      interceptor.call = CallFunction(
        requestFunction: { _ in events.add("request") },
        outcomeFunction: { events.add("outcome \($0.error?.code ?? .ok)") },
        endFunction: { events.add("end \($0.error?.code ?? .ok)") }
      )
    }
  }

  /// The time of the wait counts.
  func testCallsBeginOnceTheRulesAreKnown() async {
    let transport = self.transport { _ in }
    let events = Events()
    let client = ProtocolClient.scripted(transport, interceptors: [self.noting(events)])
    let outcome = client.outcome(of: "x").outcome
    transport.virtualExecutor.advance(by: .seconds(2))
    XCTAssertEqual(events.all, [])
    XCTAssertEqual(transport.streams.count, 0)
    XCTAssertEqual(transport.serviceRules.waitingCount, 1)
    self.run(transport) { $0.update { _ in MethodRules(timeout: .seconds(5)) } }
    XCTAssertEqual(transport.streams.map { $0.request.headers["connect-timeout-ms"] }, [["3000"]])
    XCTAssertEqual(events.all, ["request"])
    transport.virtualExecutor.advance(by: .seconds(3))
    let response = await outcome.wait()
    XCTAssertEqual(response.code, .deadlineExceeded)
    XCTAssertEqual(transport.serviceRules.waitingCount, 0)
  }

  func testTheRulesTimeoutMayBeOverAlready() async {
    for own in [nil, Duration.seconds(60)] {
      let transport = self.transport()
      let outcome = ProtocolClient.scripted(transport, timeout: own).outcome(of: "x").outcome
      transport.virtualExecutor.advance(by: .seconds(6))
      self.run(transport) { $0.update { _ in MethodRules(timeout: .seconds(5)) } }
      let response = await outcome.wait()
      XCTAssertEqual(response.code, .deadlineExceeded)
      XCTAssertEqual(transport.streams.count, 0)
      XCTAssertEqual(transport.virtualExecutor.scheduled, [])
    }
  }

  /// One deadline takes the place of the other.
  func testAShorterDeadlineReplacesTheOwn() async {
    let transport = self.transport()
    let outcome = ProtocolClient.scripted(transport, timeout: .seconds(60)).outcome(of: "x").outcome
    transport.virtualExecutor.runUntilIdle()
    XCTAssertEqual(transport.virtualExecutor.scheduled, [.seconds(60)])
    self.run(transport) { $0.update { _ in MethodRules(timeout: .seconds(5)) } }
    let response = await outcome.wait()
    XCTAssertEqual(response.message, "x")
    XCTAssertEqual(transport.streams.map { $0.request.headers["connect-timeout-ms"] }, [["5000"]])
    XCTAssertEqual(transport.virtualExecutor.scheduled, [])
  }

  func testDeadlineAndCancellationEndTheWait() async {
    for isCancelled in [true, false] {
      let transport = self.transport()
      let events = Events()
      let client = ProtocolClient.scripted(
        transport,
        interceptors: [self.noting(events)],
        timeout: .seconds(3)
      )
      let call = client.outcome(of: "x")
      transport.virtualExecutor.advance(by: .seconds(3) - .milliseconds(1))
      XCTAssertEqual(call.outcome.count, 0)
      if isCancelled { call.handle.cancel() } else { transport.virtualExecutor.advance(by: .milliseconds(1)) }
      let response = await call.outcome.wait()
      XCTAssertEqual(response.code, isCancelled ? .canceled : .deadlineExceeded)
      XCTAssertEqual(events.all, ["end \(response.code)"])
      XCTAssertEqual(transport.serviceRules.waitingCount, 0)
      XCTAssertEqual(transport.virtualExecutor.scheduled, [])
      self.run(transport) { $0.update(nil) }
      XCTAssertEqual(transport.streams.count, 0)
      XCTAssertEqual(call.outcome.count, 0, "completed more than once")
    }
  }

  func testTheTaskOfACallMayBeCancelled() async {
    let transport = self.transport()
    let client = ProtocolClient.scripted(transport)
    let task = Task { await client.unary(.unary, "x") }
    for _ in 0..<10_000 where transport.serviceRules.waitingCount == 0 { await Task.yield() }
    task.cancel()
    let response = await task.value
    XCTAssertEqual(response.code, .canceled)
    XCTAssertEqual(transport.serviceRules.waitingCount, 0)
  }

  /// Those that wait for a server anyway go on waiting for the rules, too.
  func testAFailureLetsTheImpatientGoOn() async {
    let transport = self.transport()
    let client = ProtocolClient.scripted(transport)
    let impatient = client.outcome(of: "x").outcome
    let patient = Signal<ResponseMessage<Text>>()
    let options = CallOptions(waitForReady: true)
    client.unary(.unary, "x", options: options) { patient.fire($0) }
    transport.virtualExecutor.runUntilIdle()
    XCTAssertEqual(transport.serviceRules.waitingCount, 2)
    self.run(transport) { $0.updateFailed() }
    let response = await impatient.wait()
    XCTAssertEqual(response.message, "x")
    let later = await client.unary(.unary, "x")
    XCTAssertEqual(later.message, "x")
    XCTAssertEqual(transport.serviceRules.waitingCount, 1)
    XCTAssertEqual(patient.count, 0)
    self.run(transport) { $0.update { _ in MethodRules(timeout: .seconds(5)) } }
    let last = await patient.wait()
    XCTAssertEqual(last.message, "x")
    XCTAssertEqual(
      transport.streams.map { $0.request.headers.first("connect-timeout-ms") },
      [nil, nil, "5000"]
    )
  }

  func testNoneComes() async {
    let transport = self.transport()
    let outcome = ProtocolClient.scripted(transport).outcome(of: "x").outcome
    transport.virtualExecutor.runUntilIdle()
    self.run(transport) { $0.stopExpecting() }
    let response = await outcome.wait()
    XCTAssertEqual(response.message, "x")
  }

  func testNoMoreMayWaitThanTheEndpointSays() async {
    let transport = self.transport()
    transport.maximumWaitingForRules.value = 2
    let client = ProtocolClient.scripted(transport)
    let first = [client.outcome(of: "x").outcome, client.outcome(of: "x").outcome]
    let third = await client.unary(.unary, "x")
    XCTAssertEqual(third.error?.message, "too many")
    XCTAssertEqual(transport.serviceRules.waitingCount, 2)
    self.run(transport) { $0.update(nil) }
    for outcome in first {
      let response = await outcome.wait()
      XCTAssertEqual(response.message, "x")
    }
  }

  /// In the order of their starts, although a hook of one may cancel another.
  func testCallsGoOnInOrderUnlessTheyAreCancelledMeanwhile() async {
    let transport = self.transport { _ in }
    let last = Box<CallHandle?>(nil)
    let cancelling = TestInterceptor.make { interceptor in
      interceptor.call.requestFunction = { _ in last.exchange(nil)?.cancel() }
    }
    let client = ProtocolClient.scripted(transport, interceptors: [cancelling])
    let calls = ["a", "b", "c", "d", "e"].map { client.outcome(of: Text($0)) }
    last.value = calls[3].handle
    self.run(transport) { $0.update(nil) }
    XCTAssertEqual(transport.streams.map(\.sentMessage), ["\"a\"", "\"b\"", "\"c\"", "\"e\""])
    let response = await calls[3].outcome.wait()
    XCTAssertEqual(response.code, .canceled)
    for call in calls { call.handle.cancel() }
    transport.virtualExecutor.runUntilIdle()
  }

  /// What a stream's caller sends meanwhile goes out behind its head.
  func testStreamsWait() {
    let transport = self.transport { stream in
      stream.respondStream()
      stream.onFinish = { stream in
        for message in stream.sentMessages { stream.sendMessage(message) }
        stream.endStream()
      }
    }
    let results = Events()
    let handle = ProtocolClient.scripted(transport).bidirectionalStream(.bidirectional) {
      results.add($0.short)
    }
    handle.send("a")
    handle.send("b")
    handle.finish()
    transport.virtualExecutor.runUntilIdle()
    XCTAssertEqual(results.all, [])
    XCTAssertEqual(transport.streams.count, 0)
    self.run(transport) { $0.update(nil) }
    XCTAssertEqual(results.all, ["headers", "a", "b", "end ok"])
  }
}
