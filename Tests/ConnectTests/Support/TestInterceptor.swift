import Connect
import ConnectTesting
import NIOCore
import Synchronization

/// An interceptor of ``Text`` methods that is made of closures.
struct TestInterceptor: Interceptor {
  var call = CallFunction()
  var unaryBytes = UnaryFunction()
  var unaryMessages = UnaryMessageFunction<Text, Text>()
  var streamBytes = StreamFunction()
  var streamMessages = StreamMessageFunction<Text, Text>()

  func callFunction(_ method: MethodInfo) -> CallFunction { self.call }
  func unaryFunction() -> UnaryFunction { self.unaryBytes }
  func streamFunction() -> StreamFunction { self.streamBytes }

  func unaryMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> UnaryMessageFunction<Input, Output> {
    (self.unaryMessages as Any) as? UnaryMessageFunction<Input, Output> ?? UnaryMessageFunction()
  }

  func streamMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> StreamMessageFunction<Input, Output> {
    (self.streamMessages as Any) as? StreamMessageFunction<Input, Output> ?? StreamMessageFunction()
  }

  /// A factory of interceptors that `configure` sets up.
  static func make(_ configure: @escaping @Sendable (inout TestInterceptor) -> Void) -> InterceptorFactory {
    { _ in
      var interceptor = TestInterceptor()
      configure(&interceptor)
      return interceptor
    }
  }
}

/// An async interceptor of ``Text`` methods that is made of closures.
struct TestAsyncInterceptor: AsyncUnaryInterceptor, AsyncStreamInterceptor {
  typealias Unary = @Sendable (HTTPRequest<Text>, UnaryNext<Text, Text>) async throws -> ResponseMessage<Text>
  typealias Stream =
    @Sendable (StreamRequest<Text>, StreamNext<Text, Text>) async throws -> StreamResponse<Text>

  var unary: Unary = { request, next in try await next(request) }
  var stream: Stream = { request, next in try await next(request) }

  func interceptUnary<Input, Output>(
    _ request: HTTPRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: UnaryNext<Input, Output>
  ) async throws -> ResponseMessage<Output> {
    guard let request = request as? HTTPRequest<Text>, let next = next as? UnaryNext<Text, Text>,
      let response = try await self.unary(request, next) as? ResponseMessage<Output>
    else { return try await next(request) }
    return response
  }

  func interceptStream<Input, Output>(
    _ request: StreamRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: StreamNext<Input, Output>
  ) async throws -> StreamResponse<Output> {
    guard let request = request as? StreamRequest<Text>, let next = next as? StreamNext<Text, Text>,
      let response = try await self.stream(request, next) as? StreamResponse<Output>
    else { return try await next(request) }
    return response
  }

  static func unary(_ body: @escaping Unary) -> InterceptorFactory {
    { _ in TestAsyncInterceptor(unary: body) }
  }

  static func stream(_ body: @escaping Stream) -> InterceptorFactory {
    { _ in TestAsyncInterceptor(stream: body) }
  }
}

extension StreamResult where Message == Text {
  /// `headers`, the message, or how the stream ended.
  var short: String {
    switch self {
    case .headers: "headers"
    case .message(let message): message.text
    case .complete(let code, _, _): "end \(code)"
    }
  }
}

extension StreamResult where Message == ByteBuffer {
  /// `headers`, the message's bytes, or how the stream ended.
  var short: String {
    switch self {
    case .headers: "headers"
    case .message(let message): String(buffer: message)
    case .complete(let code, _, _): "end \(code)"
    }
  }
}

extension HookEvent {
  /// An event of a stream: `A head`, `A > message`, `A < result`.
  var short: String {
    switch self.value {
    case let message as Text: "\(self.interceptor) > \(message.text)"
    case let message as ByteBuffer: "\(self.interceptor) > \(String(buffer: message))"
    case let result as StreamResult<Text>: "\(self.interceptor) < \(result.short)"
    case let result as StreamResult<ByteBuffer>: "\(self.interceptor) < \(result.short)"
    default: "\(self.interceptor) head"
    }
  }
}
