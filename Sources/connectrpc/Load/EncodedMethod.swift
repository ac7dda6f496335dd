import Connect
import ConnectProtobufC
import NIOCore
import Synchronization

/// A method whose request is encoded once for all calls, and whose responses are not decoded: so the server has the load.
struct EncodedMethod {
  let spec: MethodSpec<ByteBuffer, ByteBuffer>
  let request: ByteBuffer

  init(_ method: MethodDescriptor, _ request: DynamicMessage, isJSON: Bool) throws {
    self.spec = MethodSpec(info: method.info, input: .bytes, output: .bytes)
    self.request = try isJSON ? request.jsonBytes() : request.serializedBytes()
  }

  /// One call, to its end, with the sizes of its bodies.
  func measuredCall(_ client: ProtocolClient, _ options: CallOptions) async -> LoadRun.End {
    let sizes = BodySizes()
    var options = options
    options.interceptors.append { _ in sizes }
    let error = await self.call(client, options)
    let exchange = sizes.exchange
    return LoadRun.End(
      error: error,
      requestBytes: exchange?.requestBodyBytes ?? 0,
      responseBytes: exchange?.responseBodyBytes ?? 0
    )
  }

  private func call(_ client: ProtocolClient, _ options: CallOptions) async -> ConnectError? {
    switch self.spec.info.streamType {
    case .unary:
      return await client.unary(self.spec, self.request, options: options).error
    case .serverStream:
      return await client.serverStream(self.spec, self.request, options: options).results.error
    case .clientStream:
      let stream = client.clientStream(self.spec, options: options)
      try? await stream.send(self.request)
      return await stream.closeAndReceive().error
    case .bidirectionalStream:
      let stream = client.bidirectionalStream(self.spec, options: options)
      try? await stream.send(self.request)
      stream.finish()
      return await stream.results.error
    }
  }
}

/// Learns at the end of its call how large the bodies were.
private final class BodySizes: Interceptor, Sendable {
  private let found = Mutex<CallOutcome.Exchange?>(nil)

  var exchange: CallOutcome.Exchange? { self.found.withLock { $0 } }

  func callFunction(_ method: MethodInfo) -> CallFunction {
    CallFunction(endFunction: { outcome in self.found.withLock { $0 = outcome.exchange } })
  }
}
