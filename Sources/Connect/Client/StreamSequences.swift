internal import Synchronization

/// The results of a stream, one by one: headers, messages, and the end, which may be an error.
///
/// A result is read from the wire only when it is asked for. A stream is iterated once: leaving the loop before the end
/// cancels the call, and a second iteration, of ``StreamMessages`` too, has one result, an end with
/// `failed_precondition`.
public struct StreamResults<Output: Sendable>: AsyncSequence, Sendable {
  public typealias Element = StreamResult<Output>
  public typealias Failure = Never

  let source: ResultSource<Output>

  public struct AsyncIterator: AsyncIteratorProtocol {
    let iteration: StreamIteration<Output>

    public mutating func next() async -> StreamResult<Output>? {
      await self.iteration.next()
    }
  }

  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(iteration: StreamIteration(self.source))
  }
}

/// The messages of a stream, one by one; throws the ``ConnectError`` that the stream ends with, if it does.
///
/// A message is read from the wire only when it is asked for. A stream is iterated once: leaving the loop before the end
/// cancels the call, and a second iteration, of ``StreamResults`` too, throws `failed_precondition`.
public struct StreamMessages<Output: Sendable>: AsyncSequence, Sendable {
  public typealias Element = Output

  let source: ResultSource<Output>

  public struct AsyncIterator: AsyncIteratorProtocol {
    let iteration: StreamIteration<Output>

    public mutating func next() async throws -> Output? {
      if let message = self.iteration.takeMessage() { return message }
      while let result = await self.iteration.next() {
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
    AsyncIterator(iteration: StreamIteration(self.source))
  }
}

/// One iteration over a stream, which all copies of an iterator share. When the last copy is released, the call is
/// cancelled.
///
/// `@unchecked Sendable`: what changes is an iterator's own, and an iterator is used by one task at a time.
final class StreamIteration<Output: Sendable>: @unchecked Sendable {
  private let source: ResultSource<Output>
  /// Whether there was another iteration before this one.
  private let isRepeated: Bool
  private var hasEnded = false

  init(_ source: ResultSource<Output>) {
    self.source = source
    self.isRepeated = !source.beginIteration()
  }

  deinit {
    if !self.isRepeated { self.source.cancel() }
  }

  func next() async -> StreamResult<Output>? {
    guard self.isRepeated else { return await self.source.next() }
    guard !self.hasEnded else { return nil }
    self.hasEnded = true
    return .failed(.iteratedAgain(self.source.method))
  }

  func takeMessage() -> Output? {
    self.isRepeated ? nil : self.source.takeMessage()
  }
}

/// What a stream's sequences read from, whatever the stream sends.
class ResultSource<Output: Sendable>: @unchecked Sendable {
  let method: MethodInfo
  private let isIterated = Atomic(false)

  init(method: MethodInfo) {
    self.method = method
  }

  /// Returns false if an iteration has begun before.
  final func beginIteration() -> Bool {
    !self.isIterated.exchange(true, ordering: .relaxed)
  }

  /// Cancels the call, if it is not over.
  func cancel() {}

  /// The next result; nil behind the end. Cancelling the task cancels the call.
  func next() async -> StreamResult<Output>? { nil }

  /// The next result, if that is a message that has arrived and can be had without waiting; nil says nothing.
  func takeMessage() -> Output? { nil }
}
