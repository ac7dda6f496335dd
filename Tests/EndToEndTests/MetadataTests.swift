internal import Connect
internal import LoopbackServer
internal import SwiftProtobuf
import XCTest

/// Metadata arrives as it was sent: repeated names, commas and unicode in values.
final class MetadataTests: XCTestCase {
  private let values = ["one", "two, three", "größer, 🚀", "a=b; c=\"d,e\""]

  private var options: CallOptions {
    CallOptions(headers: ["X-Repeated": self.values, "x-single": ["1"]])
  }

  private var instruction: Instruction {
    .with {
      $0.headers = [.with { ($0.name, $0.values) = ("x-header", self.values) }]
      $0.trailers = [
        .with { ($0.name, $0.values) = ("x-trailer", self.values) },
        .with { ($0.name, $0.values) = ("x-other", ["2"]) },
      ]
    }
  }

  /// What a server tells of the values that it was sent.
  private func seenValues(_ setting: Setting) -> [String] {
    switch setting.server {
    case .loopback: self.values
    // It gives bytes as Latin-1.
    case .hypercorn: self.values.map { String(String.UnicodeScalarView($0.utf8.map { Unicode.Scalar($0) })) }
    }
  }

  private func expect(_ seen: Seen?, _ headers: Headers?, _ trailers: Headers, _ setting: Setting) {
    XCTAssertEqual(seen?.values("x-repeated"), self.seenValues(setting), "\(setting)")
    XCTAssertEqual(seen?.values("x-single"), ["1"], "\(setting)")
    XCTAssertEqual(headers?["X-Header"], self.values, "\(setting)")
    XCTAssertEqual(headers?["x-trailer"], [], "\(setting)")
    XCTAssertEqual(trailers["x-trailer"], self.values, "\(setting)")
    XCTAssertEqual(trailers["X-Other"], ["2"], "\(setting)")
    XCTAssertEqual(trailers["x-header"], [], "\(setting)")
  }

  func testUnary() async throws {
    for setting in Setting.all {
      try await setting.withClient { client in
        let response = await client.unary(
          TestMethods.echo,
          .with { $0.instruction = self.instruction },
          options: self.options
        )
        self.expect(response.message?.seen, response.headers, response.trailers, setting)
      }
    }
  }

  func testServerStream() async throws {
    for setting in Setting.all {
      try await setting.withClient { client in
        let request = CountRequest.with {
          $0.instruction = self.instruction
          $0.instruction.messageCount = 1
        }
        let outcome = await client.serverStream(TestMethods.count, request, options: self.options).results
          .collect()
        self.expect(outcome.messages.first?.seen, outcome.headers.first, outcome.trailers, setting)
      }
    }
  }

  func testClientStream() async throws {
    for setting in Setting.all {
      try await setting.withClient { client in
        let stream = client.clientStream(TestMethods.sum, options: self.options)
        try await stream.send(.with { $0.instruction = self.instruction })
        let response = await stream.closeAndReceive()
        self.expect(response.message?.seen, response.headers, response.trailers, setting)
      }
    }
  }

  func testBidirectionalStream() async throws {
    for setting in Setting.all {
      try await setting.withClient { client in
        let stream = client.bidirectionalStream(TestMethods.converse, options: self.options)
        try await stream.send(.with { $0.instruction = self.instruction })
        stream.finish()
        let outcome = await stream.results.collect()
        self.expect(outcome.messages.first?.seen, outcome.headers.first, outcome.trailers, setting)
      }
    }
  }

  /// Errors carry both, as metadata.
  func testErrors() async throws {
    for setting in Setting.all {
      try await setting.withClient { client in
        let response = await client.unary(
          TestMethods.echo,
          .with {
            $0.instruction = self.instruction
            $0.instruction.failure.code = .aborted
          }
        )
        XCTAssertEqual(response.code, .aborted, "\(setting)")
        XCTAssertEqual(response.error?.metadata["x-header"], self.values, "\(setting)")
        XCTAssertEqual(response.error?.metadata["x-trailer"], self.values, "\(setting)")
        XCTAssertEqual(response.error?.metadata["x-other"], ["2"], "\(setting)")

        let request = CountRequest.with {
          $0.instruction = self.instruction
          $0.instruction.failure.code = .aborted
        }
        let outcome = await client.serverStream(TestMethods.count, request).results.collect()
        XCTAssertEqual(outcome.code, .aborted, "\(setting)")
        XCTAssertEqual(outcome.error?.metadata["x-trailer"], self.values, "\(setting)")
        XCTAssertEqual(outcome.trailers["x-other"], ["2"], "\(setting)")
      }
    }
  }
}
