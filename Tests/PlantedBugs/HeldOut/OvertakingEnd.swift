internal import Connect
internal import ConnectTesting
internal import Synchronization

/// Holds messages back until the policy of the service is there.
///
/// The bug: the end of the request does not wait for the messages that are held back.
struct OvertakingEnd: AsyncStreamInterceptor {
  let isMended: Bool
  let fetchPolicy: @Sendable () async throws -> Void

  func interceptStream<Input: Sendable, Output: Sendable>(
    _ request: StreamRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: StreamNext<Input, Output>
  ) async throws -> StreamResponse<Output> {
    let (messages, continuation) = AsyncThrowingStream.makeStream(of: Input.self)
    let gate = MessageGate(continuation)
    let policy = Task {
      do {
        try await self.fetchPolicy()
        gate.open()
      } catch {
        continuation.finish(throwing: error)
      }
    }
    let work = Task {
      do {
        for try await message in request.messages { gate.pass(message) }
        if self.isMended { gate.finish() } else { continuation.finish() }
      } catch {
        continuation.finish(throwing: error)
      }
    }
    continuation.onTermination = { _ in
      policy.cancel()
      work.cancel()
    }
    return try await next(StreamRequest(head: request.head, messages: PulledSequence(messages)))
  }
}

/// Keeps messages until it is open.
private final class MessageGate<Message: Sendable>: Sendable {
  private let continuation: AsyncThrowingStream<Message, any Error>.Continuation
  private struct State {
    /// Nil once it is open.
    var held: [Message]? = []
    var isOver = false
  }

  private let state = Mutex(State())

  init(_ continuation: AsyncThrowingStream<Message, any Error>.Continuation) {
    self.continuation = continuation
  }

  func pass(_ message: Message) {
    self.state.withLock { state in
      if state.held != nil { state.held?.append(message) } else { self.continuation.yield(message) }
    }
  }

  func open() {
    self.state.withLock { state in
      for message in state.held ?? [] { self.continuation.yield(message) }
      state.held = nil
      if state.isOver { self.continuation.finish() }
    }
  }

  /// Ends the messages behind those that are held back.
  func finish() {
    self.state.withLock { state in
      state.isOver = true
      if state.held == nil { self.continuation.finish() }
    }
  }
}

extension ExplorationCase {
  static let overtakingEnd = ExplorationCase(
    "OvertakingEnd",
    source: "grpc/grpc-java#12888",
    breaking: ["messages arrive as they were sent"]
  ) { isMended in
    InterceptorExplorer { world in
      Subject { _ in OvertakingEnd(isMended: isMended) { try await world.step("policy") } }
    }
    .methods([.clientStream, .bidirectionalStream])
  }
}
