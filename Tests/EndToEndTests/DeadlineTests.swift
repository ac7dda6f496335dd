internal import Connect
internal import LoopbackServer
internal import SwiftProtobuf
import XCTest

/// The deadline reaches the server and is kept here, whatever the server does.
final class DeadlineTests: XCTestCase {
  private let slow = Instruction.with {
    $0.delayMs = 60_000
    $0.messageCount = 1
  }
  private let short = CallOptions(timeout: .milliseconds(150))

  func testServerSeesIt() async throws {
    for setting in Setting.all {
      try await setting.withClient { client in
        let options = CallOptions(timeout: .seconds(45))
        let response = await client.unary(TestMethods.echo, EchoRequest(), options: options)
        self.expect(response.message?.seen.timeoutMs, setting)
        let stream = client.serverStream(
          TestMethods.count,
          .with { $0.instruction.messageCount = 1 },
          options: options
        )
        let outcome = await stream.results.collect()
        self.expect(outcome.messages.first?.seen.timeoutMs, setting)
      }
    }
  }

  private func expect(_ timeout: Int64?, _ setting: Setting) {
    XCTAssertGreaterThan(timeout ?? -1, 0, "\(setting)")
    XCTAssertLessThanOrEqual(timeout ?? .max, 45_000, "\(setting)")
  }

  func testSlowServer() async throws {
    for setting in Setting.plain {
      try await setting.withClient { client in
        let slow = self.slow
        let unary = await client.unary(TestMethods.echo, .with { $0.instruction = slow }, options: self.short)
        XCTAssertEqual(unary.code, .deadlineExceeded, "\(setting)")

        let count = client.serverStream(
          TestMethods.count,
          .with { $0.instruction = slow },
          options: self.short
        )
        let counted = await count.results.collect()
        XCTAssertEqual(counted.code, .deadlineExceeded, "\(setting)")

        let sum = client.clientStream(TestMethods.sum, options: self.short)
        try? await sum.send(.with { $0.instruction = slow })
        let summed = await sum.closeAndReceive()
        XCTAssertEqual(summed.code, .deadlineExceeded, "\(setting)")

        let converse = client.bidirectionalStream(TestMethods.converse, options: self.short)
        try? await converse.send(.with { $0.instruction = slow })
        converse.finish()
        let conversed = await converse.results.collect()
        XCTAssertEqual(conversed.code, .deadlineExceeded, "\(setting)")
      }
    }
  }

  /// A server that knows nothing of deadlines: the client gives up by itself, and says so on the wire.
  func testServerThatIgnoresIt() async throws {
    for version in Version.allCases {
      try await EmbeddedServer.run(version) { embedded in
        embedded.server.onRaw("/never") { _, responder in await responder.waitUntilClosed() }
        try await embedded.client.expectFailure(
          unaryMethod("/never"),
          ExpectedError(.deadlineExceeded, "/never did not complete within"),
          version.rawValue,
          options: self.short
        )
        for index in 0..<2 {
          let record = try await embedded.server.endedRequest(to: "/never", index: index)
          XCTAssertEqual(record.outcome, EmbeddedServer.givenUp(version), version.rawValue)
          XCTAssertNotNil(record.headers.first("connect-timeout-ms"), version.rawValue)
        }
      }
    }
  }

  /// The messages before the deadline are delivered.
  func testInTheMiddleOfAStream() async throws {
    for version in Version.allCases {
      try await EmbeddedServer.run(version) { embedded in
        embedded.server.onRaw("/half") { _, responder in
          try await responder.sendHead(headers: ["content-type": "application/connect+proto"])
          try await responder.sendBody([0, 0, 0, 0, 0])
          await responder.waitUntilClosed()
        }
        // Long enough for the first message on a machine that has much to do.
        let options = CallOptions(timeout: .seconds(2))
        let stream = embedded.client.serverStream(streamMethod("/half"), CountRequest(), options: options)
        let outcome = await stream.results.collect()
        XCTAssertEqual(outcome.messages.count, 1, version.rawValue)
        XCTAssertEqual(outcome.code, .deadlineExceeded, version.rawValue)
        let record = try await embedded.server.endedRequest(to: "/half")
        XCTAssertEqual(record.outcome, EmbeddedServer.givenUp(version), version.rawValue)
      }
    }
  }

  /// While the TLS handshake gets no answer, and for the calls behind it.
  func testWithoutAConnection() async throws {
    let server = try await RawServer.start { connection in while try await connection.receive() != nil {} }
    try await withPlainClient(.http2, host: "https://127.0.0.1:\(server.port)") { client in
      let options = self.short
      await withTaskGroup(of: Code.self) { group in
        for _ in 0..<10 {
          group.addTask { await client.unary(TestMethods.echo, EchoRequest(), options: options).code }
        }
        for await code in group { XCTAssertEqual(code, .deadlineExceeded) }
      }
    }
    await server.stop()
  }

  /// One that has passed before the call starts: nothing is sent.
  func testPassedAtTheStart() async throws {
    for version in Version.allCases {
      try await EmbeddedServer.run(version) { embedded in
        for timeout in [Duration.zero, .seconds(-1)] {
          try await embedded.client.expectFailure(
            TestMethods.echo,
            ExpectedError(.deadlineExceeded),
            version.rawValue,
            options: CallOptions(timeout: timeout)
          )
        }
        XCTAssertEqual(embedded.server.requests.count, 0, version.rawValue)
      }
    }
  }
}
