import ConnectSwiftCompatibility
import ConnectTesting
import LoopbackServer

/// Some methods of `connect.test.v1.TestService` in memory, and stubs in connect-swift's form that call them.
struct MemoryService {
  typealias Methods = LoopbackServer::Connect_Test_V1_TestServiceClient.Methods

  let transport = InMemoryTransport()
  /// The headers of the requests that have arrived.
  let requests = Received<[String: [String]]>()

  init() {
    let requests = self.requests
    self.transport.onUnary(Methods.echo) { request, context in
      requests.add(context.requestHeaders.dictionary)
      context.responseHeaders["x-server"] = ["memory"]
      context.responseTrailers["x-end"] = ["yes"]
      guard !request.hasInstruction else {
        throw Connect::ConnectError(
          code: .notFound,
          message: "no such payload",
          details: [try Connect::ConnectError.Detail(Connect_Test_V1_ErrorInfo.with { $0.reason = "gone" })],
          metadata: ["x-reason": ["gone"]]
        )
      }
      return .with { $0.payload = request.payload }
    }
    self.transport.onUnary(Methods.lookup) { request, context in
      .with { $0.value = "\(context.request.method) \(request.key)" }
    }
    self.transport.onServerStream(Methods.count) { request, responses, context in
      requests.add(context.requestHeaders.dictionary)
      for number in request.from..<request.from + 2 {
        try await responses.send(.with { $0.number = number })
      }
    }
    self.transport.onClientStream(Methods.sum) { messages, context in
      var sum: Int64 = 0
      for try await message in messages { sum += message.number }
      context.responseHeaders["x-server"] = ["memory"]
      return .with { $0.sum = sum }
    }
    self.transport.onBidirectionalStream(Methods.converse) { messages, responses, _ in
      for try await message in messages { try await responses.send(.with { $0.payload = message.payload }) }
    }
  }

  func client(_ interceptors: InterceptorFactory...) -> Connect_Test_V1_TestServiceClient {
    self.client(ProtocolClientConfig(host: "http://memory", interceptors: interceptors))
  }

  func client(_ config: ProtocolClientConfig) -> Connect_Test_V1_TestServiceClient {
    Connect_Test_V1_TestServiceClient(client: ProtocolClient(httpClient: self.transport, config: config))
  }
}
