/// The results of a stream, one by one: headers, messages, and the end, which may be an error.
///
/// A result is read from the wire only when it is asked for. What is iterated is the stream itself: a second
/// iteration goes on where the first stopped.
public struct StreamResults<Output: Sendable>: AsyncSequence, Sendable {
  public typealias Element = StreamResult<Output>
  public typealias Failure = Never

  let pull: @Sendable () async -> StreamResult<Output>?

  public struct AsyncIterator: AsyncIteratorProtocol {
    let pull: @Sendable () async -> StreamResult<Output>?

    public mutating func next() async -> StreamResult<Output>? {
      await self.pull()
    }
  }

  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(pull: self.pull)
  }
}

/// The messages of a stream, one by one; throws the ``ConnectError`` that the stream ends with, if it does.
///
/// A message is read from the wire only when it is asked for.
public struct StreamMessages<Output: Sendable>: AsyncSequence, Sendable {
  public typealias Element = Output

  let pull: @Sendable () async -> StreamResult<Output>?

  public struct AsyncIterator: AsyncIteratorProtocol {
    let pull: @Sendable () async -> StreamResult<Output>?

    public mutating func next() async throws -> Output? {
      while let result = await self.pull() {
        switch result {
        case .headers: continue
        case .message(let message): return message
        case .complete(_, let error?, _): throw error
        case .complete: return nil
        }
      }
      return nil
    }
  }

  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(pull: self.pull)
  }
}
