/// The results of a stream, one by one: headers, messages, and the end, which may be an error.
///
/// A result is read from the wire only when it is asked for. What is iterated is the stream itself: a second
/// iteration goes on where the first stopped.
public struct StreamResults<Output: Sendable>: AsyncSequence, Sendable {
  public typealias Element = StreamResult<Output>
  public typealias Failure = Never

  let source: ResultSource<Output>

  public struct AsyncIterator: AsyncIteratorProtocol {
    let source: ResultSource<Output>

    public mutating func next() async -> StreamResult<Output>? {
      await self.source.next()
    }
  }

  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(source: self.source)
  }
}

/// The messages of a stream, one by one; throws the ``ConnectError`` that the stream ends with, if it does.
///
/// A message is read from the wire only when it is asked for.
public struct StreamMessages<Output: Sendable>: AsyncSequence, Sendable {
  public typealias Element = Output

  let source: ResultSource<Output>

  public struct AsyncIterator: AsyncIteratorProtocol {
    let source: ResultSource<Output>

    public mutating func next() async throws -> Output? {
      if let message = self.source.takeMessage() { return message }
      while let result = await self.source.next() {
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
    AsyncIterator(source: self.source)
  }
}

/// What a stream's sequences read from, whatever the stream sends.
class ResultSource<Output: Sendable>: @unchecked Sendable {
  /// The next result; nil behind the end. Cancelling the task cancels the call.
  func next() async -> StreamResult<Output>? { nil }

  /// The next result, if that is a message that has arrived and can be had without waiting; nil says nothing.
  func takeMessage() -> Output? { nil }
}
