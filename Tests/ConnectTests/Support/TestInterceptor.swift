import Connect
import NIOCore
import Synchronization

/// An interceptor of ``Text`` methods that is made of closures.
struct TestInterceptor: Interceptor {
  var unaryBytes = UnaryFunction()
  var unaryMessages = UnaryMessageFunction<Text, Text>()
  var streamBytes = StreamFunction()
  var streamMessages = StreamMessageFunction<Text, Text>()

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

  /// A factory of interceptors that `configure` fills in.
  static func make(_ configure: @escaping @Sendable (inout TestInterceptor) -> Void) -> InterceptorFactory {
    { _ in
      var interceptor = TestInterceptor()
      configure(&interceptor)
      return interceptor
    }
  }

  /// One that writes down what passes its message and byte hooks of unary calls.
  static func recording(_ name: String, to events: Events) -> InterceptorFactory {
    Self.make { interceptor in
      interceptor.unaryMessages = UnaryMessageFunction(
        requestFunction: { request, proceed in
          events.add("\(name) message request")
          proceed(.success(request))
        },
        responseFunction: { response, proceed in
          events.add("\(name) message response \(response.code)")
          proceed(response)
        }
      )
      interceptor.unaryBytes = UnaryFunction(
        requestFunction: { request, proceed in
          events.add("\(name) byte request")
          proceed(.success(request))
        },
        responseFunction: { response, proceed in
          events.add("\(name) byte response \(response.code)")
          proceed(response)
        }
      )
    }
  }

  /// One that writes down what passes its message hooks of streams.
  static func recordingStream(_ name: String, to events: Events) -> InterceptorFactory {
    Self.make { interceptor in
      interceptor.streamMessages = StreamMessageFunction(
        requestFunction: { request, proceed in
          events.add("\(name) head")
          proceed(.success(request))
        },
        requestMessageFunction: { message, proceed in
          events.add("\(name) > \(message.text)")
          proceed(message)
        },
        streamResultFunction: { result, proceed in
          events.add("\(name) < \(result.short)")
          proceed(result)
        }
      )
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
