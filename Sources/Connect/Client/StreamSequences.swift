internal import Synchronization

/// The results of a stream, one by one: headers, messages, and the end, which may be an error.
///
/// A result is read from the wire only on demand. A stream is iterated once: leaving the loop before the end cancels
/// the call. A second iteration, of ``StreamMessages`` too, has one result, an end with `failed_precondition`.
public struct StreamResults<Output: Sendable>: AsyncSequence, Sendable {
  public typealias Element = StreamResult<Output>
  public typealias Failure = Never

  let session: StreamSession

  public struct AsyncIterator: AsyncIteratorProtocol, Sendable {
    let iteration: StreamIteration

    public mutating func next() async -> StreamResult<Output>? {
      await self.next(isolation: nil)
    }

    /// The next result, for a caller on `actor`. If the actor runs on the call's executor, the caller does not leave it for a
    /// result that has arrived.
    public mutating func next(isolation actor: isolated (any Actor)?) async -> StreamResult<Output>? {
      guard let result = await self.iteration.nextResult() else { return nil }
      return StreamResult(result)
    }
  }

  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(iteration: StreamIteration(self.session))
  }
}

/// The messages of a stream, one by one; throws the ``ConnectError`` that the stream ends with, if it does.
///
/// A message is read from the wire only on demand. A stream is iterated once: leaving the loop before the end cancels
/// the call. A second iteration, of ``StreamResults`` too, throws `failed_precondition`.
public struct StreamMessages<Output: Sendable>: AsyncSequence, Sendable {
  public typealias Element = Output

  let session: StreamSession

  public struct AsyncIterator: AsyncIteratorProtocol {
    let iteration: StreamIteration

    public mutating func next() async throws -> Output? {
      try await self.next(isolation: nil)
    }

    /// The next message, for a caller on `actor`. If the actor runs on the call's executor, the caller does not leave it for a
    /// message that has arrived.
    public mutating func next(isolation actor: isolated (any Actor)?) async throws -> Output? {
      guard let message = try await self.iteration.nextMessage() else { return nil }
      return MessageBox<Output>.of(message).message
    }
  }

  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(iteration: StreamIteration(self.session))
  }
}

/// One iteration over a stream, which all copies of an iterator share. When the last copy is released, the call is
/// cancelled.
final class StreamIteration: Sendable {
  private let session: StreamSession
  /// Whether there was another iteration before this one.
  private let isRepeated: Bool
  /// Whether a repeated iteration has had its one result.
  private let hasEnded = Atomic(false)

  init(_ session: StreamSession) {
    self.session = session
    self.isRepeated = !session.beginIteration()
  }

  deinit {
    if !self.isRepeated { self.session.call.cancel() }
  }

  /// The next result; nil behind the end.
  nonisolated(nonsending) func nextResult() async -> ResultPart? {
    guard self.isRepeated else {
      if let result = self.session.poll() { return result }
      return await self.session.next()
    }
    guard !self.hasEnded.exchange(true, ordering: .relaxed) else { return nil }
    return .failed(
      ConnectError(
        code: .failedPrecondition,
        message:
          "the stream of \(self.session.method.path) was iterated before; a stream can be iterated once"
      )
    )
  }

  /// The next message; nil behind the end.
  ///
  /// - Throws: The ``ConnectError`` that the stream ends with.
  nonisolated(nonsending) func nextMessage() async throws -> (any AnyMessage)? {
    while true {
      switch await self.nextResult() {
      case nil: return nil
      case .headers, .bytes: continue
      case .message(let message): return message
      case .end(let error?, _): throw error
      case .end, .whole, .wholeBytes: return nil
      }
    }
  }
}
