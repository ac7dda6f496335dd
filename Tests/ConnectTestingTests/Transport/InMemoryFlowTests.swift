import Connect
import ConnectTesting
import LoopbackServer
import NIOCore
import SwiftProtobuf
import Synchronization
import XCTest

/// Flow control, deadlines and cancellation in memory.
final class InMemoryFlowTests: XCTestCase {
  private static let chunk = Data(count: 10_000)

  // MARK: Cancellation in a handler

  /// What a handler waits for ends when it cancels the task that waits, and the call goes on.
  func testAHandlerMayCancelWhatWaits() async throws {
    let transport = InMemoryTransport()
    transport.onBidirectionalStream(TestMethods.converse) { requests, responses, context in
      await withTaskGroup(of: Bool.self) { group in
        group.addTask { (try? await context.sleep(for: .seconds(1000))) == nil }
        group.addTask {
          await context.waitUntilClosed()
          return true
        }
        group.addTask {
          var requests = requests.makeAsyncIterator()
          return (try? await requests.next()) == nil
        }
        group.cancelAll()
        for await hasEnded in group { XCTAssertTrue(hasEnded) }
      }
      try await responses.send(.with { $0.payload.text = "still here" })
    }
    let client = InMemoryTransportTests.client(transport)
    let stream = client.bidirectionalStream(TestMethods.converse, options: CallOptions(timeout: .seconds(10)))
    let collected = try await stream.results.collected()
    XCTAssertEqual(try collected.requireMessages().map(\.payload.text), ["still here"])
  }

  // MARK: Back-pressure

  func testHandlerWaitsForAClientThatDoesNotRead() async throws {
    let transport = InMemoryTransport(window: 25_000)
    let sent = Observation()
    transport.onServerStream(TestMethods.flood) { _, responses, _ in
      for _ in 0..<20 {
        try await responses.send(.with { $0.data = Self.chunk })
        sent.add()
      }
    }
    let client = InMemoryTransportTests.client(transport)

    let stream = client.serverStream(TestMethods.flood, Connect_Test_V1_FloodRequest())
    var messages = stream.messages.makeAsyncIterator()
    _ = try await messages.next()
    try await transport.settle()
    // The client has taken one, and the window holds two more and a half.
    XCTAssertLessThanOrEqual(sent.count, 4)
    XCTAssertGreaterThanOrEqual(sent.count, 1)

    var received = 1
    while try await messages.next() != nil { received += 1 }
    XCTAssertEqual(received, 20)
    XCTAssertEqual(sent.count, 20)
  }

  func testMessageLargerThanTheWindowPasses() async throws {
    let transport = InMemoryTransport(window: 100)
    transport.onUnary(TestMethods.echo) { request, _ in .with { $0.payload = request.payload } }
    let client = InMemoryTransportTests.client(transport)
    for _ in 0..<2 {
      let response = await client.unary(TestMethods.echo, .with { $0.payload.data = Self.chunk })
      XCTAssertEqual(try response.requireMessage().payload.data, Self.chunk)
    }
  }

  func testClientWaitsForAHandlerThatDoesNotRead() async throws {
    let transport = InMemoryTransport(window: 25_000)
    let gate = Observation()
    transport.onClientStream(TestMethods.sum) { requests, context in
      try await gate.wait(for: 1)
      var count: Int64 = 0
      for try await _ in requests { count += 1 }
      return .with { [count] in $0.sum = count }
    }
    let client = InMemoryTransportTests.client(transport)
    let stream = client.clientStream(TestMethods.sum)
    let sent = Observation()
    let sender = Task {
      for _ in 0..<40 {
        try await stream.send(
          .with { $0.instruction.trailers = [.with { $0.name = String(repeating: "x", count: 10_000) }] }
        )
        sent.add()
      }
    }

    try await sent.wait(for: 3)
    try await transport.settle()
    XCTAssertLessThan(sent.count, 15)
    gate.add()
    try await sender.value

    let response = await stream.closeAndReceive()
    XCTAssertEqual(try response.requireMessage().sum, 40)
  }

  // MARK: Deadlines

  func testHandlerSeesTheDeadlineAndIsStoppedByIt() async throws {
    for network in [NetworkProtocol.connect, .grpc, .grpcWeb] {
      let transport = InMemoryTransport()
      let timeout = Mutex<Duration?>(nil)
      let interrupted = Observation()
      transport.onUnary(TestMethods.echo) { _, context in
        timeout.withLock { $0 = context.timeout }
        do {
          try await context.sleep(for: .seconds(60))
        } catch {
          interrupted.add()
          throw error
        }
        return EchoResponse()
      }
      let client = InMemoryTransportTests.client(transport) { $0.networkProtocol = network }

      let options = CallOptions(timeout: .milliseconds(20))
      let response = await client.unary(TestMethods.echo, EchoRequest(), options: options)

      try response.requireError(.deadlineExceeded)
      let seen = try XCTUnwrap(timeout.withLock { $0 })
      XCTAssertLessThanOrEqual(seen, .milliseconds(20))
      XCTAssertGreaterThan(seen, .zero)
      try await interrupted.wait(for: 1)
    }
  }

  func testServerKeepsTheTimeThatARawClientAnnounces() async throws {
    // Without a client that would give up first.
    let transport = InMemoryTransport()
    transport.onUnary(TestMethods.echo) { _, context in
      try await context.sleep(for: .seconds(60))
      return EchoResponse()
    }
    let http = RawHTTPClient(transport)
    let headers: Headers = ["content-type": ["application/proto"], "connect-timeout-ms": ["5"]]
    let response = try await http.post(TestMethods.echo.path, headers: headers)
    XCTAssertEqual(response.status, 504)
    XCTAssertEqual(response.body, #"{"code":"deadline_exceeded","message":"the time limit has passed"}"#)
  }

  // MARK: Cancellation

  func testCancellingEndsTheHandler() async throws {
    for streamsAreRead in [true, false] {
      let transport = InMemoryTransport()
      let events = Observation()
      transport.onBidirectionalStream(TestMethods.converse) { requests, responses, context in
        try await context.sendHeaders()
        events.add()
        if streamsAreRead {
          do {
            for try await _ in requests {}
          } catch {
            events.add()
          }
        } else {
          await context.waitUntilClosed()
          events.add()
        }
        if Task.isCancelled { events.add() }
        do {
          try await responses.send(ConverseResponse())
        } catch {
          events.add()
        }
      }
      let client = InMemoryTransportTests.client(transport)

      let stream = client.bidirectionalStream(TestMethods.converse)
      try await events.wait(for: 1)
      stream.cancel()

      try await events.wait(for: 4)
      let collected = try await stream.results.collected()
      try collected.requireError(.canceled)
    }
  }

  func testCancellingBeforeTheHandlerRunsIsSafe() async throws {
    let transport = InMemoryTransport()
    transport.onUnary(TestMethods.echo) { _, _ in EchoResponse() }
    let client = InMemoryTransportTests.client(transport)
    for _ in 0..<200 {
      let results = CallbackResults<Code>()
      let handle = client.unary(TestMethods.echo, EchoRequest()) { results.receive($0.code) }
      handle.cancel()
      let code = try await results.next(1)
      XCTAssertTrue(code == [.canceled] || code == [.ok])
    }
  }

  // MARK: Many calls

  func testManyCallsAtOnce() async throws {
    let transport = InMemoryTransport()
    transport.onUnary(TestMethods.echo) { request, _ in
      await Task.yield()
      return .with { $0.payload = request.payload }
    }
    let client = InMemoryTransportTests.client(transport)
    let total = await withTaskGroup(of: Int64.self) { group in
      for number in 0..<500 {
        group.addTask {
          let response = await client.unary(TestMethods.echo, .with { $0.payload.big = Int64(number) })
          return response.message?.payload.big ?? -1
        }
      }
      return await group.reduce(0, +)
    }
    XCTAssertEqual(total, 500 * 499 / 2)
  }
}
