internal import Connect
internal import ConnectTesting

/// Sends messages in pairs, so that the server has less to do.
///
/// The bug: if the last message has no partner, it is not sent.
struct LostBatch: AsyncStreamInterceptor {
  func interceptStream<Input: Sendable, Output: Sendable>(
    _ request: StreamRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: StreamNext<Input, Output>
  ) async throws -> StreamResponse<Output> {
    try await next(StreamRequest(head: request.head, messages: PulledSequence(Pairs(base: request.messages))))
  }
}

/// The elements of a sequence, of which two are there at a time.
private struct Pairs<Base: AsyncSequence & Sendable>: AsyncSequence, Sendable where Base.Element: Sendable {
  let base: Base

  struct AsyncIterator: AsyncIteratorProtocol {
    var base: Base.AsyncIterator
    var pending: Base.Element?

    mutating func next() async throws -> Base.Element? {
      if let second = self.pending {
        self.pending = nil
        return second
      }
      guard let first = try await self.base.next(), let second = try await self.base.next() else {
        return nil
      }
      self.pending = second
      return first
    }
  }

  func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base: self.base.makeAsyncIterator()) }
}

extension ExplorationCase {
  static let lostBatch = ExplorationCase(
    "LostBatch",
    source: "elastic/logstash#5300",
    breaking: ["messages arrive as they were sent"],
    InterceptorExplorer(of: { _ in LostBatch() })
      .methods([.clientStream, .bidirectionalStream])
  )
}
