import Connect
import LoopbackServer
import SwiftProtobuf

/// The calls of the demo. Each throws on an unexpected result.
struct Scenarios {
  /// What `make generate` wrote for the service in Protos/connect/test/v1.
  let service: any Connect_Test_V1_TestServiceClientInterface
  /// nil if no timeline is kept.
  let timeline: Timeline?

  init(client: ProtocolClient, timeline: Timeline?) {
    self.service = Connect_Test_V1_TestServiceClient(client: client)
    self.timeline = timeline
  }

  private var options: CallOptions {
    var options = CallOptions(timeout: .seconds(10))
    options.context[TimelineKey.self] = self.timeline
    return options
  }

  private func note(_ text: String) {
    self.timeline?.note("caller", depth: 0, text)
  }

  func unary() async throws {
    self.note("Echo(\"Hello\")")
    let message = try await self.service.echo(.with { $0.payload.text = "Hello" }, options: self.options)
    self.note("got \"\(message.payload.text)\"")
    try expect(message.payload.text == "Hello", "the echo is \(message.payload.text)")
    try expectToken(in: message.seen)
  }

  func serverStream() async throws {
    self.note("Count(from: 7), three numbers")
    let messages = self.service.count(
      .with {
        $0.from = 7
        $0.instruction.messageCount = 3
      },
      options: self.options
    )
    var numbers: [Int64] = []
    for try await message in messages {
      if numbers.isEmpty { try expectToken(in: message.seen) }
      numbers.append(message.number)
    }
    self.note("got \(numbers)")
    try expect(numbers == [7, 8, 9], "the numbers are \(numbers)")
  }

  func clientStream() async throws {
    self.note("Sum(1, 2, 39)")
    let stream = self.service.sum(options: self.options)
    for number in [1, 2, 39] as [Int64] { try await stream.send(.with { $0.number = number }) }
    let message = try await stream.closeAndReceive().get()
    self.note("got \(message.sum)")
    try expect(message.sum == 42, "the sum is \(message.sum)")
    try expectToken(in: message.seen)
  }

  /// - Parameter isFullDuplex: Whether each message is answered before the next is sent, which needs HTTP/2.
  func bidirectional(isFullDuplex: Bool) async throws {
    self.note("Converse, \(isFullDuplex ? "an answer to each message" : "all messages, then the answers")")
    let stream = self.service.converse(options: self.options)
    var answers = stream.messages.makeAsyncIterator()
    var texts: [String] = []
    for text in ["ping", "pong"] {
      try await stream.send(.with { $0.payload.text = text })
      if isFullDuplex, let answer = try await answers.next() { texts.append(answer.payload.text) }
    }
    stream.finish()
    while let answer = try await answers.next() { texts.append(answer.payload.text) }
    self.note("got \(texts)")
    try expect(texts == ["ping", "pong"], "the answers are \(texts)")
  }

  func failure() async throws {
    self.note("Echo, which the server refuses")
    let response = await self.service.echo(
      request: try .with {
        $0.instruction.failure.code = .failedPrecondition
        $0.instruction.failure.message = "the door is closed, 請稍候"
        let info = Connect_Test_V1_ErrorInfo.with {
          $0.reason = "DOOR_CLOSED"
          $0.domain = "demo"
          $0.metadata = ["opens": "09:00"]
        }
        $0.instruction.failure.details = [try .init(message: info)]
      },
      options: self.options
    )
    guard let error = response.error else { throw DemoFailure("the call did not fail") }
    self.note("got \(error.code): \(error.message ?? "")")
    for info in error.unpackedDetails(Connect_Test_V1_ErrorInfo.self) {
      self.note("detail ErrorInfo: \(info.reason), opens \(info.metadata["opens"] ?? "?")")
    }
    try expect(error.code == .failedPrecondition, "the code is \(error.code)")
    try expect(
      error.unpackedDetails(Connect_Test_V1_ErrorInfo.self).first?.reason == "DOOR_CLOSED",
      "the detail is missing"
    )
  }

  func cancellation(server: LoopbackServer) async throws {
    self.note("Count without end, cancelled after two numbers")
    let earlier = server.requests.filter { $0.path == TestMethods.count.path }.count
    let stream = self.service.count(
      request: .with {
        $0.instruction.messageCount = 1_000_000
        $0.instruction.messageDelayMs = 5
      },
      options: self.options
    )
    var count = 0
    var end: Code?
    for await result in stream.results {
      switch result {
      case .headers: break
      case .message:
        count += 1
        if count == 2 { stream.cancel() }
      case .complete(let code, _, _): end = code
      }
    }
    self.note("got \(count) numbers, then \(end.map { "\($0)" } ?? "nothing")")
    let record = try await server.endedRequest(to: TestMethods.count.path, index: earlier)
    self.note("the server saw \(record.resetCode == 8 ? "RST_STREAM(CANCEL)" : "no reset")")
    try expect(end == .canceled, "the stream ended otherwise")
    try expect(record.resetCode == 8, "the server did not see the reset")
  }

  private func expectToken(in seen: Connect_Test_V1_Seen) throws {
    let values = seen.headers.filter { $0.name == "authorization" }.flatMap(\.values)
    try expect(values == ["Bearer \(TokenInterceptor.token)"], "the server saw the token \(values)")
  }
}

struct DemoFailure: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }
}

func expect(_ condition: Bool, _ problem: @autoclosure () -> String) throws {
  guard condition else { throw DemoFailure(problem()) }
}
