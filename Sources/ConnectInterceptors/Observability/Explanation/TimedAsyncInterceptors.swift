internal import Connect
internal import NIOCore

// Async interceptors with a stopwatch that stands still while they wait for `next`. Of a stream, what they do with the
// sequences afterwards is not seen.

struct TimedAsyncUnaryInterceptor: AsyncUnaryInterceptor {
  let base: any AsyncUnaryInterceptor
  let index: Int
  let call: ExplainedCall

  func interceptUnary<Input: Sendable, Output: Sendable>(
    _ request: HTTPRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: UnaryNext<Input, Output>
  ) async throws -> ResponseMessage<Output> {
    let stopwatch = AsyncStopwatch(self.index, self.call)
    defer { stopwatch.stop() }
    return try await self.base.interceptUnary(
      request,
      method: method,
      next: UnaryNext { request in try await stopwatch.pausing { try await next(request) } }
    )
  }
}

struct TimedAsyncUnaryByteInterceptor: AsyncUnaryByteInterceptor {
  let base: any AsyncUnaryByteInterceptor
  let index: Int
  let call: ExplainedCall

  func interceptUnaryBytes(
    _ request: HTTPRequest<ByteBuffer>,
    method: MethodInfo,
    next: UnaryByteNext
  ) async throws -> HTTPResponse {
    let stopwatch = AsyncStopwatch(self.index, self.call)
    defer { stopwatch.stop() }
    return try await self.base.interceptUnaryBytes(
      request,
      method: method,
      next: UnaryByteNext { request in try await stopwatch.pausing { try await next(request) } }
    )
  }
}

struct TimedAsyncStreamInterceptor: AsyncStreamInterceptor {
  let base: any AsyncStreamInterceptor
  let index: Int
  let call: ExplainedCall

  func interceptStream<Input: Sendable, Output: Sendable>(
    _ request: StreamRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: StreamNext<Input, Output>
  ) async throws -> StreamResponse<Output> {
    let stopwatch = AsyncStopwatch(self.index, self.call)
    defer { stopwatch.stop() }
    return try await self.base.interceptStream(
      request,
      method: method,
      next: StreamNext { request in try await stopwatch.pausing { try await next(request) } }
    )
  }
}

struct TimedAsyncStreamByteInterceptor: AsyncStreamByteInterceptor {
  let base: any AsyncStreamByteInterceptor
  let index: Int
  let call: ExplainedCall

  func interceptStreamBytes(
    _ request: StreamRequest<ByteBuffer>,
    method: MethodInfo,
    next: StreamNext<ByteBuffer, ByteBuffer>
  ) async throws -> StreamResponse<ByteBuffer> {
    let stopwatch = AsyncStopwatch(self.index, self.call)
    defer { stopwatch.stop() }
    return try await self.base.interceptStreamBytes(
      request,
      method: method,
      next: StreamNext { request in try await stopwatch.pausing { try await next(request) } }
    )
  }
}
