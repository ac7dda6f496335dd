internal import Connect
internal import ConnectNIO
internal import Foundation
internal import LoopbackServer
internal import SwiftProtobuf
internal import XCTest

/// Calls of each kind over HTTP/3, to aioquic and hypercorn, in all protocols.
final class HTTP3CallTests: XCTestCase {
  typealias EchoRequest = Connect_Test_V1_EchoRequest
  typealias EchoResponse = Connect_Test_V1_EchoResponse

  func testUnary() async throws {
    for setting in HTTP3Setting.all {
      try await setting.withClient { client in
        for text in ["one", "two", "three"] {
          let response = await client.unary(TestMethods.echo, .with { $0.payload.text = text })
          XCTAssertEqual(response.code, .ok, "\(setting): \(String(describing: response.error))")
          XCTAssertEqual(response.message?.payload.text, text, "\(setting)")
          XCTAssertEqual(response.message?.seen.httpVersion, "3", "\(setting)")
        }
      }
    }
  }

  func testGET() async throws {
    let setting = HTTP3Setting(server: .aioquic, networkProtocol: .connect)
    try await setting.withClient(unaryGET: .alwaysEnabled) { client in
      let response = await client.unary(TestMethods.lookup, .with { $0.key = "k" })
      XCTAssertEqual(response.message?.value, "value of k", "\(String(describing: response.error))")
      XCTAssertEqual(response.message?.seen.httpMethod, "GET")
    }
  }

  func testServerStream() async throws {
    for setting in HTTP3Setting.all {
      try await setting.withClient { client in
        let stream = client.serverStream(
          TestMethods.count,
          .with {
            $0.from = 10
            $0.instruction.messageCount = 50
            $0.instruction.trailers = [
              .with {
                $0.name = "x-end"; $0.values = ["yes"]
              }
            ]
          }
        )
        let outcome = try await Outcome(stream.results)
        XCTAssertEqual(outcome.code, .ok, "\(setting): \(String(describing: outcome.error))")
        XCTAssertEqual(outcome.messages.map(\.number), (10..<60).map { $0 }, "\(setting)")
        XCTAssertEqual(outcome.trailers["x-end"], ["yes"], "\(setting)")
      }
    }
  }

  func testClientStream() async throws {
    for setting in HTTP3Setting.all {
      try await setting.withClient { client in
        let stream = client.clientStream(TestMethods.sum)
        for number in 1...100 { try await stream.send(.with { $0.number = Int64(number) }) }
        let response = await stream.closeAndReceive()
        XCTAssertEqual(response.message?.sum, 5050, "\(setting): \(String(describing: response.error))")
      }
    }
  }

  /// Each message is sent after the answer to the one before.
  func testFullDuplexStream() async throws {
    for setting in HTTP3Setting.all {
      try await setting.withClient { client in
        let stream = client.bidirectionalStream(TestMethods.converse)
        var answers = stream.messages.makeAsyncIterator()
        for index in 0..<100 {
          try await stream.send(.with { $0.payload.small = Int32(index) })
          let answer = try await answers.next()
          guard answer?.payload.small == Int32(index) else {
            return XCTFail("\(setting): \(String(describing: answer))")
          }
        }
        stream.finish()
        let end = try await answers.next()
        XCTAssertNil(end, "\(setting)")
      }
    }
  }

  func testErrorsWithDetailsAndMetadata() async throws {
    for setting in HTTP3Setting.all {
      try await setting.withClient { client in
        let response = await client.unary(
          TestMethods.echo,
          .with {
            $0.instruction.headers = [
              .with {
                $0.name = "x-head"; $0.values = ["a", "b"]
              }
            ]
            $0.instruction.trailers = [
              .with {
                $0.name = "x-tail"; $0.values = ["c"]
              }
            ]
            $0.instruction.failure.code = .notFound
            $0.instruction.failure.message = "nicht da: ß"
          }
        )
        XCTAssertEqual(response.code, .notFound, "\(setting)")
        XCTAssertEqual(response.error?.message, "nicht da: ß", "\(setting)")
        XCTAssertEqual(response.error?.metadata["x-tail"], ["c"], "\(setting)")
      }
    }
  }

  func testLargeMessages() async throws {
    for setting in HTTP3Setting.all where setting.server != .retry {
      try await setting.withClient { client in
        let text = String(repeating: "0123456789abcdef", count: 50_000)
        let response = await client.unary(
          TestMethods.echo,
          .with {
            $0.payload.text = text
            $0.instruction.responseBytes = 700_000
          }
        )
        XCTAssertEqual(
          response.message?.payload.text == text,
          true,
          "\(setting): \(String(describing: response.error))"
        )
        XCTAssertEqual(response.message?.padding.count, 700_000, "\(setting)")
      }
    }
  }

  func testManyCallsAtTheSameTime() async throws {
    for setting in HTTP3Setting.aioquic {
      try await setting.withClient { client in
        await withTaskGroup(of: (Int32, ResponseMessage<EchoResponse>).self) { group in
          for index in 0..<Int32(300) {
            group.addTask {
              (index, await client.unary(TestMethods.echo, .with { $0.payload.small = index }))
            }
          }
          for await (index, response) in group {
            let error = response.error.map { "\($0)" } ?? ""
            XCTAssertEqual(response.message?.payload.small, index, "\(setting): \(error)")
          }
        }
      }
    }
  }

  func testDeadline() async throws {
    for setting in HTTP3Setting.aioquic {
      try await setting.withClient { client in
        let options = CallOptions(timeout: .milliseconds(150))
        let response = await client.unary(
          TestMethods.echo,
          .with { $0.instruction.delayMs = 60_000 },
          options: options
        )
        XCTAssertEqual(response.code, .deadlineExceeded, "\(setting)")
        let stream = client.serverStream(
          TestMethods.count,
          .with {
            $0.instruction.messageCount = 100_000; $0.instruction.messageDelayMs = 5
          },
          options: options
        )
        let outcome = try await Outcome(stream.results)
        XCTAssertEqual(outcome.code, .deadlineExceeded, "\(setting)")
        let next = await client.unary(TestMethods.echo, EchoRequest())
        XCTAssertEqual(next.code, .ok, "\(setting)")
      }
    }
  }

  func testSlowReaderHoldsBackTheServer() async throws {
    for setting in HTTP3Setting.aioquic {
      try await setting.withClient { client in
        let stream = client.serverStream(
          TestMethods.flood,
          .with {
            $0.totalBytes = 20_000_000; $0.messageBytes = 100_000
          }
        )
        var offset: UInt64 = 0
        for try await message in stream.messages {
          XCTAssertEqual(UInt64(message.offset), offset, "\(setting)")
          offset += UInt64(message.data.count)
          if offset == 500_000 { try await Task.sleep(for: .milliseconds(300)) }
        }
        XCTAssertEqual(offset, 20_000_000, "\(setting)")
      }
    }
  }
}

/// The results of a stream.
struct Outcome<Output: Sendable> {
  var messages: [Output] = []
  var code: Connect.Code?
  var error: ConnectError?
  var trailers: Headers = [:]

  init(_ results: StreamResults<Output>) async throws {
    for await result in results { self.add(result) }
  }

  private mutating func add(_ result: StreamResult<Output>) {
    switch result {
    case .headers: break
    case .message(let message): self.messages.append(message)
    case .complete(let code, let error, let trailers):
      self.code = code
      self.error = error
      self.trailers = trailers
    }
  }
}
