internal import Connect
internal import LoopbackServer
internal import SwiftProtobuf
import XCTest

/// Errors of the server arrive whole: code, message, typed details.
final class ServerErrorTests: XCTestCase {
  private let info = ErrorInfo.with {
    $0.reason = "DOOR_CLOSED"
    $0.domain = "häuser"
    $0.metadata = ["opens": "09:00"]
  }

  private func failure(_ code: Connect_Test_V1_Code) throws -> Failure {
    try .with {
      $0.code = code
      $0.message = "closed, 請稍候"
      $0.details = [
        try Google_Protobuf_Any(message: self.info),
        try Google_Protobuf_Any(message: Payload.varied),
        try Google_Protobuf_Any(message: ErrorInfo.with { $0.reason = "second" }),
      ]
    }
  }

  private func expect(_ error: ConnectError?, _ code: Code, _ setting: Setting) {
    XCTAssertEqual(error?.code, code, "\(setting): \(String(describing: error))")
    XCTAssertEqual(error?.message, "closed, 請稍候", "\(setting)")
    XCTAssertEqual(error?.details.count, 3, "\(setting)")
    let infos = error?.unpackedDetails(ErrorInfo.self)
    XCTAssertEqual(infos?.first, self.info, "\(setting)")
    XCTAssertEqual(infos?.map(\.reason), ["DOOR_CLOSED", "second"], "\(setting)")
    XCTAssertEqual(error?.unpackedDetails(Payload.self), [.varied], "\(setting)")
    XCTAssertEqual(error?.unpackedDetails(Google_Protobuf_Duration.self).count, 0, "\(setting)")
  }

  func testUnary() async throws {
    for setting in Setting.all {
      try await setting.withClient { client in
        let failure = try self.failure(.notFound)
        let response = await client.unary(TestMethods.echo, .with { $0.instruction.failure = failure })
        self.expect(response.error, .notFound, setting)
        XCTAssertEqual(response.error?.httpStatus, 404, "\(setting)")
        XCTAssertThrowsError(try response.get(), "\(setting)")
      }
    }
  }

  /// The messages before the error are delivered.
  func testServerStream() async throws {
    for setting in Setting.all {
      try await setting.withClient { client in
        let request = try CountRequest.with {
          $0.instruction.messageCount = 5
          $0.instruction.failure = try self.failure(.resourceExhausted)
          $0.instruction.failure.afterMessages = 3
        }
        let outcome = await client.serverStream(TestMethods.count, request).results.collect()
        XCTAssertEqual(outcome.messages.map(\.number), [0, 1, 2], "\(setting)")
        XCTAssertEqual(outcome.code, .resourceExhausted, "\(setting)")
        self.expect(outcome.error, .resourceExhausted, setting)
      }
    }
  }

  /// The sequence of messages throws it.
  func testThrownByMessages() async throws {
    for setting in Setting.plain {
      try await setting.withClient { client in
        let failure = try self.failure(.dataLoss)
        let stream = client.serverStream(TestMethods.count, .with { $0.instruction.failure = failure })
        do {
          for try await message in stream.messages { XCTFail("\(setting): got \(message)") }
          XCTFail("\(setting): the stream ended well")
        } catch let error as ConnectError {
          self.expect(error, .dataLoss, setting)
        }
      }
    }
  }

  func testClientStream() async throws {
    for setting in Setting.all {
      try await setting.withClient { client in
        let failure = try self.failure(.failedPrecondition)
        let stream = client.clientStream(TestMethods.sum)
        try await stream.send(.with { $0.instruction.failure = failure })
        let response = await stream.closeAndReceive()
        self.expect(response.error, .failedPrecondition, setting)
      }
    }
  }

  func testBidirectionalStream() async throws {
    for setting in Setting.all {
      try await setting.withClient { client in
        let stream = client.bidirectionalStream(TestMethods.converse)
        let failure = try self.failure(.alreadyExists)
        try await stream.send(
          .with {
            $0.instruction.failure = failure
            $0.instruction.failure.afterMessages = 1
          }
        )
        stream.finish()
        let outcome = await stream.results.collect()
        XCTAssertEqual(outcome.messages.count, 1, "\(setting)")
        self.expect(outcome.error, .alreadyExists, setting)
      }
    }
  }

  /// Also those whose HTTP status means another code, for unary calls and streams.
  func testAllCodes() async throws {
    for setting in Setting.plain {
      try await setting.withClient { client in
        for code in Code.allCases where code != .ok {
          let failure = Failure.with {
            $0.code = Connect_Test_V1_Code(rawValue: code.rawValue) ?? .unspecified
            $0.message = code.name
          }
          let response = await client.unary(TestMethods.echo, .with { $0.instruction.failure = failure })
          XCTAssertEqual(response.code, code, "\(setting)")
          XCTAssertEqual(response.error?.message, code.name, "\(setting)")
          let stream = client.serverStream(TestMethods.count, .with { $0.instruction.failure = failure })
          let outcome = await stream.results.collect()
          XCTAssertEqual(outcome.code, code, "\(setting)")
          XCTAssertEqual(outcome.error?.message, code.name, "\(setting)")
        }
      }
    }
  }
}
