internal import Connect

/// Implements all hooks on bytes, and passes everything on.
struct PassingInterceptor: Interceptor {
  func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      requestFunction: { request, proceed in proceed(.success(request)) },
      responseFunction: { response, proceed in proceed(response) },
      responseMetricsFunction: { metrics, proceed in proceed(metrics) }
    )
  }

  func streamFunction() -> StreamFunction {
    StreamFunction(
      requestFunction: { request, proceed in proceed(.success(request)) },
      requestDataFunction: { data, proceed in proceed(data) },
      streamResultFunction: { result, proceed in proceed(result) }
    )
  }
}

struct PassingAsyncInterceptor: AsyncUnaryInterceptor, AsyncStreamInterceptor {
  func interceptUnary<Input, Output>(
    _ request: HTTPRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: UnaryNext<Input, Output>
  ) async throws -> ResponseMessage<Output> {
    try await next(request)
  }

  func interceptStream<Input, Output>(
    _ request: StreamRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: StreamNext<Input, Output>
  ) async throws -> StreamResponse<Output> {
    try await next(request)
  }
}
