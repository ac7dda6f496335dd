import Connect
import ConnectTesting
import Foundation
import LoopbackServer
import NIOCore
import SwiftProtobuf
import TestSupport

/// A server, and calls of each kind to it, for tests that compare what comes of them.
enum TapedCalls {
  static let messages = Cassette.Messages.of(
    TestMethods.echo,
    TestMethods.lookup,
    TestMethods.count,
    TestMethods.sum,
    TestMethods.converse
  )

  /// A server that answers the calls, fails some, and refuses a third kind.
  static func server(_ setting: WireSetting) -> InMemoryTransport {
    let transport = setting.transport
    self.serve(transport)
    return transport
  }

  static func serve(_ transport: InMemoryTransport) {
    transport.onUnary(TestMethods.echo) { request, context in
      context.responseHeaders["x-head"] = ["1", "2"]
      context.responseTrailers["x-trail"] = ["3"]
      if request.payload.text == "fail" { throw try self.failure() }
      return .with { $0.payload = request.payload }
    }
    transport.onUnary(TestMethods.lookup) { request, _ in .with { $0.value = request.key + "=1" } }
    transport.onServerStream(TestMethods.count) { request, responses, context in
      context.responseHeaders["x-head"] = ["1"]
      context.responseTrailers["x-trail"] = ["2"]
      if request.from == 200 { throw try self.failure() }
      for number in request.from..<(request.from + 3) {
        try await responses.send(.with { $0.number = number })
      }
      if request.from == 100 { throw try self.failure() }
    }
    transport.onClientStream(TestMethods.sum) { requests, _ in
      var sum: Int64 = 0
      for try await request in requests { sum += request.number }
      return .with { [sum] in $0.sum = sum }
    }
    transport.onBidirectionalStream(TestMethods.converse) { requests, responses, _ in
      for try await request in requests {
        try await responses.send(.with { $0.payload = request.payload })
      }
    }
  }

  private static func failure() throws -> ConnectError {
    ConnectError(
      code: .notFound,
      message: "no such: ä\n100%",
      details: [try ConnectError.Detail(Connect_Test_V1_ErrorInfo.with { $0.reason = "gone" })],
      metadata: ["x-why": ["because"]]
    )
  }

  static let payload = Connect_Test_V1_Payload.with {
    $0.text = "größer als \"alles\" 🚀\n"
    $0.big = .min
    $0.ratio = -0.1
    $0.data = Data([0, 0xff, 0x80])
    $0.numbers = [1, 9_007_199_254_740_993]
    $0.counts = ["one": 1]
    $0.children = [-1: .with { $0.text = String(repeating: "child ", count: 50) }]
    $0.time = .init(seconds: 1_700_000_000, nanos: 500_000_000)
  }

  /// Makes a call of each kind, and says what came of them.
  static func make(_ client: ProtocolClient) async throws -> [String] {
    var all: [String] = []
    for payload in [self.payload, .with { $0.text = "fail" }, Connect_Test_V1_Payload()] {
      all.append(Self.summary(await client.unary(TestMethods.echo, .with { $0.payload = payload })))
    }
    all.append(Self.summary(await client.unary(TestMethods.echo, EchoRequest())))
    all.append(Self.summary(await client.unary(TestMethods.lookup, .with { $0.key = "ä +&%" })))
    for from: Int64 in [3, 100, 200] {
      let stream = client.serverStream(TestMethods.count, .with { $0.from = from })
      all.append(Self.summary(try await stream.results.collected()))
    }
    let sum = client.clientStream(TestMethods.sum)
    for number: Int64 in 1...3 { try await sum.send(.with { $0.number = number }) }
    all.append(Self.summary(await sum.closeAndReceive()))
    all.append(try await self.converse(client, ["a", "b"]))
    all.append(
      Self.summary(await client.unary(TestMethods.unimplemented, .with { $0.payload.text = "nobody" }))
    )
    return all
  }

  /// Sends each text after the answer to the one before.
  static func converse(_ client: ProtocolClient, _ texts: [String]) async throws -> String {
    let stream = client.bidirectionalStream(
      TestMethods.converse,
      options: CallOptions(timeout: .seconds(20))
    )
    var answers: [String] = []
    var results = stream.results.makeAsyncIterator()
    var sent = 0
    if let first = texts.first { try await stream.send(.with { $0.payload.text = first }) }
    while let result = await results.next() {
      switch result {
      case .headers(let headers): answers.append("headers \(self.lines(headers))")
      case .message(let message):
        answers.append(message.textFormatString())
        sent += 1
        if sent < texts.count {
          try await stream.send(.with { $0.payload.text = texts[sent] })
        } else {
          stream.finish()
        }
      case .complete(let code, let error, let trailers):
        answers.append("end \(code) \(self.summary(error)) \(self.lines(trailers))")
      }
    }
    return answers.joined(separator: "\n")
  }

  static func summary<Output: SwiftProtobuf.Message>(_ response: ResponseMessage<Output>) -> String {
    let result: String =
      switch response.result {
      case .success(let message): message.textFormatString()
      case .failure(let error): self.summary(error)
      }
    return "\(response.code) \(result) \(self.lines(response.headers)) \(self.lines(response.trailers))"
  }

  static func summary<Output: SwiftProtobuf.Message>(_ stream: CollectedStream<Output>) -> String {
    let messages = stream.messages.map { $0.textFormatString() }.joined(separator: "; ")
    let end = "\(stream.code) \(self.summary(stream.error)) \(self.lines(stream.trailers))"
    return "\(self.lines(stream.headers)) \(messages) \(end)"
  }

  static func summary(_ error: ConnectError?) -> String {
    guard let error else { return "no error" }
    let details = error.details.map { "\($0.type) \(Array($0.value.readableBytesView))" }
    return
      "\(error.debugDescription) \(details) \(self.lines(error.metadata)) lost: \(error.isConnectionLost)"
  }

  /// In an order that does not count.
  private static func lines(_ headers: Headers) -> [String] {
    headers.map { "\($0.name): \($0.value)" }.sorted()
  }
}

extension WireSetting {
  /// A client over any transport.
  func client(
    over transport: any HTTPClientInterface,
    _ configure: (inout ProtocolClientConfig) -> Void = { _ in }
  ) -> ProtocolClient {
    var config = ProtocolClientConfig(
      host: "http://memory/prefix",
      networkProtocol: self.networkProtocol,
      codec: self.codec,
      compression: Compression(
        requests: self.isCompressed ? GzipCompressionPool() : nil,
        minimumRequestBytes: 0
      )
    )
    configure(&config)
    return ProtocolClient(httpClient: transport, config: config)
  }
}
