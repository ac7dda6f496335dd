import ConnectSwiftCompatibility
import ConnectTesting
import Foundation
import LoopbackServer
import XCTest

final class StreamInterceptorTests: XCTestCase {
  private let service = MemoryService()
  private let steps = Steps()

  private func noting(_ name: String, failure: ConnectError? = nil) -> InterceptorFactory {
    InterceptorFactory { [steps] _ in NotingInterceptor(name, steps, failure: failure) }
  }

  func testEachValuePassesInOrderAndEachResultInReverse() async throws {
    let client = self.service.client(self.noting("a"), self.noting("b"))
    let stream = client.count()
    try stream.send(.with { $0.from = 5 })
    var numbers: [Int64] = []
    for await result in stream.results() {
      if let message = result.messageValue { numbers.append(message.number) }
    }
    XCTAssertEqual(numbers, [5, 6])
    let results = ["headers", "message", "message", "ok"].flatMap {
      ["b raw \($0)", "a raw \($0)", "b \($0)", "a \($0)"]
    }
    let steps = self.steps.all.filter { !$0.hasSuffix("metrics") }
    XCTAssertEqual(
      steps.filter { $0.hasSuffix("start") || $0.hasSuffix("input") },
      ["a start", "b start", "a input", "b input", "a raw input", "b raw input"]
    )
    // Results may be read one at a time, so what is raw of one may be ahead of the one before.
    for kind in ["headers", "message", "ok"] {
      XCTAssertEqual(
        steps.filter { $0.hasSuffix(" \(kind)") }.filter { !$0.contains("raw") },
        results.filter { $0.hasSuffix(" \(kind)") }.filter { !$0.contains("raw") }
      )
      XCTAssertEqual(
        steps.filter { $0.hasSuffix("raw \(kind)") },
        results.filter { $0.hasSuffix("raw \(kind)") }
      )
    }
    XCTAssertEqual(steps.count, 6 + results.count)
    XCTAssertEqual(self.steps.all.filter { $0.hasSuffix("metrics") }, ["b metrics", "a metrics"])
  }

  func testFailedStartIsTheEnd() async {
    let failure = ConnectError(code: .aborted, message: nil, exception: nil, details: [], metadata: [:])
    let client = self.service.client(self.noting("a", failure: failure), self.noting("b"))
    var results: [StreamResult<Connect_Test_V1_CountResponse>] = []
    for await result in client.count().results() { results.append(result) }
    XCTAssertEqual(results, [.complete(code: .aborted, error: failure, trailers: nil)])
    XCTAssertEqual(self.steps.all, ["a start"])
    XCTAssertEqual(self.service.requests.values, [])
  }

  func testHooksReplaceWhatPasses() async throws {
    final class Doubling: StreamInterceptor {
      @Sendable
      func handleStreamStart(
        _ request: HTTPRequest<Void>,
        proceed: @escaping @Sendable (Result<HTTPRequest<Void>, ConnectError>) -> Void
      ) {
        proceed(
          .success(
            HTTPRequest(
              url: request.url,
              headers: request.headers.merging(["x-token": ["1", "2"]]) { $1 },
              message: (),
              method: request.method,
              trailers: request.trailers,
              idempotencyLevel: request.idempotencyLevel
            )
          )
        )
      }

      @Sendable
      func handleStreamInput<Message: ProtobufMessage>(
        _ input: Message,
        proceed: @escaping @Sendable (Message) -> Void
      ) {
        guard var request = input as? Connect_Test_V1_CountRequest else { return proceed(input) }
        request.from *= 2
        proceed(request as? Message ?? input)
      }

      @Sendable
      func handleStreamResult<Message: ProtobufMessage>(
        _ result: StreamResult<Message>,
        proceed: @escaping @Sendable (StreamResult<Message>) -> Void
      ) {
        guard case .complete = result else { return proceed(result) }
        proceed(.complete(code: .dataLoss, error: nil, trailers: ["x-end": ["1"]]))
      }
    }
    let client = self.service.client(InterceptorFactory { _ in Doubling() })
    let stream = client.count()
    try stream.send(.with { $0.from = 5 })
    var results: [StreamResult<Connect_Test_V1_CountResponse>] = []
    for await result in stream.results() { results.append(result) }
    XCTAssertEqual(results.compactMap { $0.messageValue?.number }, [10, 11])
    guard case .complete(let code, let error, let trailers)? = results.last else { return XCTFail("no end") }
    XCTAssertEqual(code, .dataLoss)
    XCTAssertEqual((error as? ConnectError)?.code, .dataLoss)
    XCTAssertEqual(trailers, ["x-end": ["1"]])
    XCTAssertEqual(self.service.requests.values.first?["x-token"], ["1", "2"])
  }

  func testRawHooksSeeMessagesWithoutEnvelopes() async throws {
    final class Raw: StreamInterceptor {
      let seen = Received<String>()

      @Sendable
      func handleStreamRawInput(_ input: Data, proceed: @escaping @Sendable (Data) -> Void) {
        self.seen.add(String(decoding: input, as: UTF8.self))
        proceed(Data(#"{"from":"7"}"#.utf8))
      }

      @Sendable
      func handleStreamRawResult(
        _ result: StreamResult<Data>,
        proceed: @escaping @Sendable (StreamResult<Data>) -> Void
      ) {
        guard case .message(let data) = result else { return proceed(result) }
        self.seen.add(String(decoding: data, as: UTF8.self))
        proceed(.message(Data(#"{"number":"100"}"#.utf8)))
      }
    }
    let raw = Raw()
    let client = self.service.client(InterceptorFactory { _ in raw })
    let stream = client.count()
    try stream.send(.with { $0.from = 5 })
    var numbers: [Int64] = []
    for await result in stream.results() {
      if let message = result.messageValue { numbers.append(message.number) }
    }
    XCTAssertEqual(numbers, [100, 100])
    XCTAssertEqual(raw.seen.values, [#"{"from":"5"}"#, #"{"number":"7"}"#, #"{"number":"8"}"#])
  }
}
