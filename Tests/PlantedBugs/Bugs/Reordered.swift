internal import Connect
internal import ConnectTesting

/// Seals each message of a stream before it is sent.
///
/// The bug: the messages are sealed at the same time, and go out as they are ready.
struct Reordered: AsyncStreamInterceptor {
  let seal: @Sendable () async throws -> Void

  func interceptStream<Input: Sendable, Output: Sendable>(
    _ request: StreamRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: StreamNext<Input, Output>
  ) async throws -> StreamResponse<Output> {
    let (sealed, continuation) = AsyncThrowingStream.makeStream(of: Input.self)
    let work = Task {
      do {
        try await withThrowingTaskGroup(of: Void.self) { group in
          for try await message in request.messages {
            group.addTask {
              try await self.seal()
              continuation.yield(message)
            }
          }
          try await group.waitForAll()
        }
        continuation.finish()
      } catch {
        continuation.finish(throwing: error)
      }
    }
    continuation.onTermination = { _ in work.cancel() }
    return try await next(StreamRequest(head: request.head, messages: PulledSequence(sealed)))
  }
}

extension ExplorationCase {
  static let reordered = ExplorationCase(
    "Reordered",
    source: "connectrpc/connect-swift#342",
    breaking: ["messages arrive as they were sent"],
    InterceptorExplorer { world in Subject { _ in Reordered { try await world.step("seal") } } }
      .methods([.clientStream, .bidirectionalStream])
  )
}
