import Connect
import ConnectInterceptors
import ConnectTesting
import LoopbackServer
import NIOCore
import SwiftProtobuf
import XCTest

/// Extreme numbers for what users test with.
final class ExtremeTestingTests: XCTestCase {
  func testVirtualTime() async throws {
    for number in Extremes.integers {
      let executor = VirtualExecutor(maximumRounds: number)
      executor.execute {}
      executor.runUntilIdle()
    }
    for first in Extremes.durations {
      for second in Extremes.durations {
        let executor = VirtualExecutor()
        let fired = Observed(0)
        executor.advance(by: first)
        _ = executor.schedule(after: second) { fired.update { $0 += 1 } }
        executor.passUnnoticed(second)
        executor.advance(to: second)
        executor.advanceToNext(by: first)
        executor.advance(by: .seconds(Int64.max))
        XCTAssertEqual(fired.value, 1)
        XCTAssertFalse("\(executor.now)".isEmpty)
        let instant = VirtualClock.Instant(offset: first)
        _ = instant.duration(to: instant.advanced(by: second))
        try await executor.clock.sleep(until: VirtualClock.Instant(offset: first))
      }
      _ = try? await VirtualExecutor().lettingTimePass(upTo: first, patience: first) { 1 }
      try? await VirtualExecutor().wait(upTo: first) { first >= .seconds(1) }
    }
  }

  func testTransport() async throws {
    for number in Extremes.integers {
      for executor in [nil, VirtualExecutor()] {
        let faults: [InMemoryTransport.Fault] = [
          .reset(afterBytes: number), .splitEvery(number), .splitAt([number, 1, number]),
        ]
        for fault in faults {
          let transport = InMemoryTransport(executor: executor, window: number)
          transport.inject(fault, calls: number)
          transport.onUnary(TestMethods.echo) { request, _ in .with { $0.payload = request.payload } }
          let client = ProtocolClient(
            httpClient: transport,
            config: ProtocolClientConfig(host: "http://memory", timeout: .seconds(30))
          )
          for _ in 0..<2 { _ = await client.unary(TestMethods.echo, .with { $0.payload.text = "text" }) }
        }
      }
    }
    for timeout in Extremes.durations {
      let transport = InMemoryTransport()
      transport.onUnary(TestMethods.echo) { _, context in
        try await context.sleep(for: min(timeout, .milliseconds(1)))
        return .init()
      }
      let client = ProtocolClient(
        httpClient: transport,
        config: ProtocolClientConfig(host: "http://memory", timeout: timeout)
      )
      _ = await client.unary(TestMethods.echo, .init())
    }
  }

  func testMocks() async throws {
    for time in Extremes.durations {
      let mock = Connect_Test_V1_TestServiceClientMock()
      mock.mockEcho.answer(.message(Connect_Test_V1_EchoResponse(), after: time))
      _ = await mock.echo(request: .init(), options: CallOptions(timeout: .milliseconds(10)))
      let call = try await mock.mockEcho.nextCall()
      _ = try? await call.end(within: time)
      _ = try? await call.requests(1, within: time)
      if time <= .seconds(1) { _ = try? await mock.mockEcho.nextCall(within: time) }
      for number in Extremes.integers where number <= 1 { _ = try? await call.requests(number, within: time) }
      mock.mockCount.answer(.messages([]))
      _ = try? await mock.count(request: .init()).results.collected(within: time)
    }
  }

  func testInterceptors() async throws {
    for time in Extremes.durations {
      let failing = ScriptedInterceptor.factory(.fail(ConnectError(code: .aborted)), level: .byte)
      let driver = InterceptorDriver(timeout: time, patience: time, failing)
      _ = try? await driver.unary.request(driver.makeRequest(message: ByteBuffer())).outcome
      for number in Extremes.integers {
        let server = ScriptedServer { number, _ in if number == 1 { throw ConnectError.away } }
        let client = server.client(
          ScriptedInterceptor.factory(.retry(number, after: time)),
          ScriptedInterceptor.factory(.delay(time, at: .response, on: server.executor)),
          ScriptedInterceptor.factory(.delay(time, on: server.executor)),
          ScriptedInterceptor.factory(.fail(ConnectError(code: .aborted), attempts: number))
        )
        _ = try await server.executor.lettingTimePass(upTo: .seconds(Int64.max)) {
          await client.unary(ScriptedServer.method(), .text("x"))
        }
      }
    }
  }
}
