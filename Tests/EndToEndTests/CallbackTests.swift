internal import Connect
internal import LoopbackServer
internal import SwiftProtobuf
import XCTest

/// Calls of each kind in the form with callbacks; each completes exactly once.
final class CallbackTests: XCTestCase {
  private let settings = Setting.all.filter { $0.coding == .proto }

  func testUnary() async throws {
    for setting in self.settings {
      try await setting.withClient { client in
        let responses = Recorder<ResponseMessage<EchoResponse>>()
        client.unary(TestMethods.echo, .with { $0.payload = .varied }) { responses.record($0) }
        let response = try await responses.wait(for: 1)[0]
        XCTAssertEqual(
          response.message?.payload,
          .varied,
          "\(setting): \(String(describing: response.error))"
        )
        try await expectOne(responses, client, setting)
      }
    }
  }

  func testServerStream() async throws {
    for setting in self.settings {
      try await setting.withClient { client in
        let results = Recorder<StreamResult<CountResponse>>()
        client.serverStream(TestMethods.count, .with { $0.instruction.messageCount = 20 }) {
          results.record($0)
        }
        let outcome = try await results.outcome()
        XCTAssertEqual(outcome.code, .ok, "\(setting): \(String(describing: outcome.error))")
        XCTAssertEqual(outcome.messages.map(\.number), Array(0..<20), "\(setting)")
        try await expectOneEnd(results, client, setting)
      }
    }
  }

  /// With a limited demand nothing more comes than was asked for.
  func testServerStreamOnDemand() async throws {
    for setting in self.settings {
      try await setting.withClient { client in
        let results = Recorder<StreamResult<CountResponse>>()
        let handle = client.serverStream(
          TestMethods.count,
          .with { $0.instruction.messageCount = 5 },
          demand: 1
        ) { results.record($0) }
        // Headers, five messages, the end.
        for count in 1...7 {
          try await results.wait(for: count, of: "results (\(setting))")
          // A call from start to end: time for what must not come.
          let other = await client.unary(TestMethods.echo, EchoRequest())
          XCTAssertEqual(other.code, .ok, "\(setting)")
          XCTAssertEqual(results.values.count, count, "\(setting)")
          handle.request(1)
        }
        let outcome = StreamOutcome(results.values)
        XCTAssertEqual(outcome.code, .ok, "\(setting)")
        XCTAssertEqual(outcome.messages.map(\.number), Array(0..<5), "\(setting)")
      }
    }
  }

  func testClientStream() async throws {
    for setting in self.settings {
      try await setting.withClient { client in
        let responses = Recorder<ResponseMessage<SumResponse>>()
        let accepted = Recorder<ConnectError?>()
        let handle = client.clientStream(TestMethods.sum) { responses.record($0) }
        for number in 1...50 { handle.send(.with { $0.number = Int64(number) }) { accepted.record($0) } }
        handle.finish()
        let response = try await responses.wait(for: 1)[0]
        XCTAssertEqual(response.message?.sum, 1275, "\(setting): \(String(describing: response.error))")
        try await expectOne(responses, client, setting)
        XCTAssertEqual(accepted.values.count, 50, "\(setting)")
        XCTAssertTrue(accepted.values.allSatisfy { $0 == nil }, "\(setting)")
      }
    }
  }

  func testHalfDuplexBidirectionalStream() async throws {
    for setting in self.settings {
      try await setting.withClient { client in
        let results = Recorder<StreamResult<ConverseResponse>>()
        let handle = client.bidirectionalStream(TestMethods.converse) { results.record($0) }
        for text in ["a", "b", "c"] {
          handle.send(
            .with {
              $0.payload.text = text
              $0.instruction.halfDuplex = true
            }
          )
        }
        handle.finish()
        let outcome = try await results.outcome()
        XCTAssertEqual(outcome.code, .ok, "\(setting): \(String(describing: outcome.error))")
        XCTAssertEqual(outcome.messages.map(\.payload.text), ["a", "b", "c"], "\(setting)")
        try await expectOneEnd(results, client, setting)
      }
    }
  }

  func testFullDuplexBidirectionalStream() async throws {
    for setting in self.settings where setting.transport.isHTTP2 {
      try await setting.withClient { client in
        let results = Recorder<StreamResult<ConverseResponse>>()
        let handle = client.bidirectionalStream(TestMethods.converse) { results.record($0) }
        for count in 1...20 {
          handle.send(.with { $0.payload.small = Int32(count) })
          // The headers and as many messages.
          try await results.wait(for: count + 1, of: "results (\(setting))")
        }
        handle.finish()
        let outcome = try await results.outcome()
        XCTAssertEqual(outcome.code, .ok, "\(setting): \(String(describing: outcome.error))")
        XCTAssertEqual(outcome.messages.map(\.payload.small), Array(1...20), "\(setting)")
        try await expectOneEnd(results, client, setting)
      }
    }
  }

  /// What fails also calls back once.
  func testFailures() async throws {
    for setting in self.settings {
      try await setting.withClient { client in
        let responses = Recorder<ResponseMessage<EchoResponse>>()
        client.unary(TestMethods.echo, .with { $0.instruction.failure.code = .aborted }) {
          responses.record($0)
        }
        let responsesCode = try await responses.wait(for: 1)[0].code
        XCTAssertEqual(responsesCode, .aborted, "\(setting)")
        try await expectOne(responses, client, setting)

        let results = Recorder<StreamResult<CountResponse>>()
        let request = CountRequest.with {
          $0.instruction.messageCount = 3
          $0.instruction.failure.code = .dataLoss
          $0.instruction.failure.afterMessages = 2
        }
        client.serverStream(TestMethods.count, request) { results.record($0) }
        let outcome = try await results.outcome()
        XCTAssertEqual(outcome.code, .dataLoss, "\(setting)")
        XCTAssertEqual(outcome.messages.count, 2, "\(setting)")
        try await expectOneEnd(results, client, setting)

        let sums = Recorder<ResponseMessage<SumResponse>>()
        let handle = client.clientStream(TestMethods.sum) { sums.record($0) }
        handle.send(.with { $0.instruction.failure.code = .outOfRange })
        handle.finish()
        let sumsCode = try await sums.wait(for: 1)[0].code
        XCTAssertEqual(sumsCode, .outOfRange, "\(setting)")
        try await expectOne(sums, client, setting)
      }
    }
  }

  func testCancelling() async throws {
    for setting in self.settings {
      try await setting.withClient { client in
        let responses = Recorder<ResponseMessage<EchoResponse>>()
        let call = client.unary(TestMethods.echo, .with { $0.instruction.delayMs = 60_000 }) {
          responses.record($0)
        }
        call.cancel()
        call.cancel()
        let responsesCode = try await responses.wait(for: 1)[0].code
        XCTAssertEqual(responsesCode, .canceled, "\(setting)")
        try await expectOne(responses, client, setting)
      }
    }
  }
}

/// Nothing more comes while another call goes from start to end.
private func expectOne<Value>(_ recorder: Recorder<Value>, _ client: ProtocolClient, _ setting: Setting)
  async throws
{
  let other = await client.unary(TestMethods.echo, EchoRequest())
  XCTAssertEqual(other.code, .ok, "\(setting)")
  XCTAssertEqual(recorder.values.count, 1, "\(setting)")
}

private func expectOneEnd<Message>(
  _ recorder: Recorder<StreamResult<Message>>,
  _ client: ProtocolClient,
  _ setting: Setting
) async throws {
  let other = await client.unary(TestMethods.echo, EchoRequest())
  XCTAssertEqual(other.code, .ok, "\(setting)")
  XCTAssertEqual(StreamOutcome(recorder.values).ends.count, 1, "\(setting)")
  XCTAssertFalse(StreamOutcome(recorder.values).isOutOfOrder, "\(setting)")
}
