internal import Connect

/// Seals each message of a stream before it is sent, one after the other.
struct OrderedSealing: AsyncStreamInterceptor {
  let seal: @Sendable () async throws -> Void

  func interceptStream<Input: Sendable, Output: Sendable>(
    _ request: StreamRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: StreamNext<Input, Output>
  ) async throws -> StreamResponse<Output> {
    let sealed = request.map { message in
      try await self.seal()
      return message
    }
    return try await next(sealed)
  }
}
