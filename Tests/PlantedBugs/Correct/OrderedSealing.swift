internal import Connect
internal import ConnectTesting

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

extension ExplorationCase {
  static let orderedSealing = ExplorationCase(
    "OrderedSealing",
    InterceptorExplorer { world in
      Subject { _ in OrderedSealing { try await world.step("seal", canFail: true) } }
    }
    .methods([.clientStream, .bidirectionalStream])
    .allowing(.failure)
  )
}
