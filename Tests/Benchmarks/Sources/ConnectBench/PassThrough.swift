import Connect

/// Interceptors that pass everything on, on all hooks.
enum PassThrough {
  static func factory(_ form: ConnectBench.InterceptorForm) -> InterceptorFactory {
    switch form {
    case .closure: { _ in Closures() }
    case .async: { _ in Async() }
    case .unused: { _ in Unused() }
    }
  }

  private struct Unused: Interceptor {}

  private struct Closures: Interceptor {
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

    func unaryMessageFunction<Input, Output>(
      _ method: MethodSpec<Input, Output>
    ) -> UnaryMessageFunction<Input, Output> {
      UnaryMessageFunction(
        requestFunction: { request, proceed in proceed(.success(request)) },
        responseFunction: { response, proceed in proceed(response) }
      )
    }

    func streamMessageFunction<Input, Output>(
      _ method: MethodSpec<Input, Output>
    ) -> StreamMessageFunction<Input, Output> {
      StreamMessageFunction(
        requestFunction: { request, proceed in proceed(.success(request)) },
        requestMessageFunction: { message, proceed in proceed(message) },
        streamResultFunction: { result, proceed in proceed(result) }
      )
    }
  }

  private struct Async: AsyncUnaryInterceptor, AsyncStreamInterceptor {
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
}
