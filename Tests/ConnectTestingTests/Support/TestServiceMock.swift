import Connect
import ConnectTesting
import LoopbackServer

// What the generators write for connect.test.v1.TestService, by hand, for one method of each stream type.

protocol Connect_Test_V1_TestServiceClientInterface: Sendable {
  func echo(
    request: Connect_Test_V1_EchoRequest,
    options: CallOptions
  ) async -> ResponseMessage<Connect_Test_V1_EchoResponse>

  @discardableResult
  func echo(
    request: Connect_Test_V1_EchoRequest,
    options: CallOptions,
    completion: @escaping @Sendable (ResponseMessage<Connect_Test_V1_EchoResponse>) -> Void
  ) -> CallHandle

  func count(
    request: Connect_Test_V1_CountRequest,
    options: CallOptions
  ) -> ServerStream<Connect_Test_V1_CountRequest, Connect_Test_V1_CountResponse>

  @discardableResult
  func count(
    request: Connect_Test_V1_CountRequest,
    options: CallOptions,
    demand: Int,
    onResult: @escaping @Sendable (StreamResult<Connect_Test_V1_CountResponse>) -> Void
  ) -> StreamHandle<Connect_Test_V1_CountRequest, Connect_Test_V1_CountResponse>

  func sum(options: CallOptions) -> ClientStream<Connect_Test_V1_SumRequest, Connect_Test_V1_SumResponse>

  func sum(
    options: CallOptions,
    completion: @escaping @Sendable (ResponseMessage<Connect_Test_V1_SumResponse>) -> Void
  ) -> StreamHandle<Connect_Test_V1_SumRequest, Connect_Test_V1_SumResponse>

  func converse(
    options: CallOptions
  ) -> BidirectionalStream<Connect_Test_V1_ConverseRequest, Connect_Test_V1_ConverseResponse>

  func converse(
    options: CallOptions,
    demand: Int,
    onResult: @escaping @Sendable (StreamResult<Connect_Test_V1_ConverseResponse>) -> Void
  ) -> StreamHandle<Connect_Test_V1_ConverseRequest, Connect_Test_V1_ConverseResponse>
}

extension Connect_Test_V1_TestServiceClientInterface {
  func echo(
    _ request: Connect_Test_V1_EchoRequest,
    options: CallOptions = CallOptions()
  ) async throws -> Connect_Test_V1_EchoResponse {
    try await self.echo(request: request, options: options).get()
  }
}

struct Connect_Test_V1_TestServiceClient: Connect_Test_V1_TestServiceClientInterface {
  private let client: ProtocolClient

  init(client: ProtocolClient) {
    self.client = client
  }

  func echo(
    request: Connect_Test_V1_EchoRequest,
    options: CallOptions
  ) async -> ResponseMessage<Connect_Test_V1_EchoResponse> {
    await self.client.unary(TestMethods.echo, request, options: options)
  }

  @discardableResult
  func echo(
    request: Connect_Test_V1_EchoRequest,
    options: CallOptions,
    completion: @escaping @Sendable (ResponseMessage<Connect_Test_V1_EchoResponse>) -> Void
  ) -> CallHandle {
    self.client.unary(TestMethods.echo, request, options: options, completion: completion)
  }

  func count(
    request: Connect_Test_V1_CountRequest,
    options: CallOptions
  ) -> ServerStream<Connect_Test_V1_CountRequest, Connect_Test_V1_CountResponse> {
    self.client.serverStream(TestMethods.count, request, options: options)
  }

  @discardableResult
  func count(
    request: Connect_Test_V1_CountRequest,
    options: CallOptions,
    demand: Int,
    onResult: @escaping @Sendable (StreamResult<Connect_Test_V1_CountResponse>) -> Void
  ) -> StreamHandle<Connect_Test_V1_CountRequest, Connect_Test_V1_CountResponse> {
    self.client.serverStream(TestMethods.count, request, options: options, demand: demand, onResult: onResult)
  }

  func sum(options: CallOptions) -> ClientStream<Connect_Test_V1_SumRequest, Connect_Test_V1_SumResponse> {
    self.client.clientStream(TestMethods.sum, options: options)
  }

  func sum(
    options: CallOptions,
    completion: @escaping @Sendable (ResponseMessage<Connect_Test_V1_SumResponse>) -> Void
  ) -> StreamHandle<Connect_Test_V1_SumRequest, Connect_Test_V1_SumResponse> {
    self.client.clientStream(TestMethods.sum, options: options, completion: completion)
  }

  func converse(
    options: CallOptions
  ) -> BidirectionalStream<Connect_Test_V1_ConverseRequest, Connect_Test_V1_ConverseResponse> {
    self.client.bidirectionalStream(TestMethods.converse, options: options)
  }

  func converse(
    options: CallOptions,
    demand: Int,
    onResult: @escaping @Sendable (StreamResult<Connect_Test_V1_ConverseResponse>) -> Void
  ) -> StreamHandle<Connect_Test_V1_ConverseRequest, Connect_Test_V1_ConverseResponse> {
    self.client.bidirectionalStream(
      TestMethods.converse,
      options: options,
      demand: demand,
      onResult: onResult
    )
  }
}

final class Connect_Test_V1_TestServiceClientMock: Connect_Test_V1_TestServiceClientInterface {
  let mockEcho: UnaryMock<Connect_Test_V1_EchoRequest, Connect_Test_V1_EchoResponse>
  let mockCount: ServerStreamMock<Connect_Test_V1_CountRequest, Connect_Test_V1_CountResponse>
  let mockSum: ClientStreamMock<Connect_Test_V1_SumRequest, Connect_Test_V1_SumResponse>
  let mockConverse: BidirectionalStreamMock<Connect_Test_V1_ConverseRequest, Connect_Test_V1_ConverseResponse>
  private let client: Connect_Test_V1_TestServiceClient

  init(_ service: MockService = MockService()) {
    self.client = Connect_Test_V1_TestServiceClient(client: service.client)
    self.mockEcho = service.unary(TestMethods.echo)
    self.mockCount = service.serverStream(TestMethods.count)
    self.mockSum = service.clientStream(TestMethods.sum)
    self.mockConverse = service.bidirectionalStream(TestMethods.converse)
  }

  func echo(
    request: Connect_Test_V1_EchoRequest,
    options: CallOptions
  ) async -> ResponseMessage<Connect_Test_V1_EchoResponse> {
    await self.client.echo(request: request, options: self.mockEcho.recording(options))
  }

  @discardableResult
  func echo(
    request: Connect_Test_V1_EchoRequest,
    options: CallOptions,
    completion: @escaping @Sendable (ResponseMessage<Connect_Test_V1_EchoResponse>) -> Void
  ) -> CallHandle {
    self.client.echo(request: request, options: self.mockEcho.recording(options), completion: completion)
  }

  func count(
    request: Connect_Test_V1_CountRequest,
    options: CallOptions
  ) -> ServerStream<Connect_Test_V1_CountRequest, Connect_Test_V1_CountResponse> {
    self.client.count(request: request, options: self.mockCount.recording(options))
  }

  @discardableResult
  func count(
    request: Connect_Test_V1_CountRequest,
    options: CallOptions,
    demand: Int,
    onResult: @escaping @Sendable (StreamResult<Connect_Test_V1_CountResponse>) -> Void
  ) -> StreamHandle<Connect_Test_V1_CountRequest, Connect_Test_V1_CountResponse> {
    self.client.count(
      request: request,
      options: self.mockCount.recording(options),
      demand: demand,
      onResult: onResult
    )
  }

  func sum(options: CallOptions) -> ClientStream<Connect_Test_V1_SumRequest, Connect_Test_V1_SumResponse> {
    self.client.sum(options: self.mockSum.recording(options))
  }

  func sum(
    options: CallOptions,
    completion: @escaping @Sendable (ResponseMessage<Connect_Test_V1_SumResponse>) -> Void
  ) -> StreamHandle<Connect_Test_V1_SumRequest, Connect_Test_V1_SumResponse> {
    self.client.sum(options: self.mockSum.recording(options), completion: completion)
  }

  func converse(
    options: CallOptions
  ) -> BidirectionalStream<Connect_Test_V1_ConverseRequest, Connect_Test_V1_ConverseResponse> {
    self.client.converse(options: self.mockConverse.recording(options))
  }

  func converse(
    options: CallOptions,
    demand: Int,
    onResult: @escaping @Sendable (StreamResult<Connect_Test_V1_ConverseResponse>) -> Void
  ) -> StreamHandle<Connect_Test_V1_ConverseRequest, Connect_Test_V1_ConverseResponse> {
    self.client.converse(options: self.mockConverse.recording(options), demand: demand, onResult: onResult)
  }
}
