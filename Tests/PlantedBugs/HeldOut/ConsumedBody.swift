internal import Connect
internal import ConnectTesting

/// Stamps each message of a stream, and begins again once if the server was unavailable.
///
/// The bug: the stamped messages can be read only once, and the second attempt has none.
struct ConsumedBody: AsyncStreamInterceptor {
  let isMended: Bool
  let stamp: @Sendable () async throws -> Void

  func interceptStream<Input: Sendable, Output: Sendable>(
    _ request: StreamRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: StreamNext<Input, Output>
  ) async throws -> StreamResponse<Output> {
    let request = self.isMended ? self.stamping(request) : self.stampingOnce(request)
    return try await next(request).recoverErrors { error in
      error.code == .unavailable ? try await next(request) : nil
    }
  }

  private func stamping<Input: Sendable>(_ request: StreamRequest<Input>) -> StreamRequest<Input> {
    request.map { message in
      try await self.stamp()
      return message
    }
  }

  private func stampingOnce<Input: Sendable>(_ request: StreamRequest<Input>) -> StreamRequest<Input> {
    let (stamped, continuation) = AsyncThrowingStream.makeStream(of: Input.self)
    let work = Task {
      do {
        for try await message in request.messages {
          try await self.stamp()
          continuation.yield(message)
        }
        continuation.finish()
      } catch {
        continuation.finish(throwing: error)
      }
    }
    continuation.onTermination = { _ in work.cancel() }
    return StreamRequest(head: request.head, messages: PulledSequence(stamped))
  }
}

extension ExplorationCase {
  static let consumedBody = ExplorationCase(
    "ConsumedBody",
    source: "jonbern/fetch-retry#99",
    breaking: ["messages arrive as they were sent"]
  ) { isMended in
    InterceptorExplorer { world in
      Subject { _ in ConsumedBody(isMended: isMended) { try await world.step("stamp") } }
    }
    .methods([.clientStream, .bidirectionalStream])
    .server(.answers(.ok, .unavailable))
  }
}
