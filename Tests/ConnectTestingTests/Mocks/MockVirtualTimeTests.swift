import Connect
import ConnectTesting
import LoopbackServer
import SwiftProtobuf
import XCTest

/// Mocks whose delays and deadlines take no real time.
final class MockVirtualTimeTests: XCTestCase {
  private let executor = VirtualExecutor()

  func testDeadlineDuringADelay() async throws {
    let mock = Connect_Test_V1_TestServiceClientMock(MockService(executor: self.executor))
    mock.mockEcho.answer(.message(EchoResponse(), after: .seconds(5)))
    let results = CallbackResults<Code>()

    mock.echo(request: EchoRequest(), options: CallOptions(timeout: .seconds(3))) { results.receive($0.code) }
    self.executor.runUntilIdle()
    // The client's deadline, the one that the server was told, and the delay.
    XCTAssertEqual(self.executor.scheduled, [.seconds(3), .seconds(3), .seconds(5)])
    self.executor.advance(by: .seconds(3))

    let codes = try await results.next(1)
    XCTAssertEqual(codes, [.deadlineExceeded])
    XCTAssertEqual(self.executor.scheduled, [])
  }

  func testDelayOfAValue() async throws {
    let mock = Connect_Test_V1_TestServiceClientMock(MockService(executor: self.executor))
    mock.mockEcho.answer(.message(EchoResponse(), after: .seconds(5)))
    let response = try await self.executor.lettingTimePass {
      await mock.echo(request: EchoRequest(), options: CallOptions())
    }
    XCTAssertEqual(response.code, .ok)
    XCTAssertEqual(self.executor.now, .seconds(5))
  }

  func testStreamThatTakesLong() async throws {
    let mock = Connect_Test_V1_TestServiceClientMock(MockService(executor: self.executor))
    mock.mockCount.answer { _, responses, context in
      for number in 0..<1000 {
        try await context.sleep(for: .seconds(1))
        try await responses.send(.with { $0.number = Int64(number) })
      }
    }
    let stream = try await self.executor.lettingTimePass {
      try await mock.count(request: CountRequest(), options: CallOptions()).results.collected()
    }
    XCTAssertEqual(try stream.requireMessages().count, 1000)
    XCTAssertEqual(self.executor.now, .seconds(1000))
  }
}
