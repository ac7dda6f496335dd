internal import Connect

/// The results of a stream, in whichever form of the library's API the stream was started.
protocol ResponseSide<Output> {
  associatedtype Output: Sendable

  /// The next result; nil behind the end.
  mutating func next() async -> StreamResult<Output>?
}

/// The results of a stream that is an asynchronous sequence.
struct IteratedResults<Output: Sendable>: ResponseSide {
  private var iterator: StreamResults<Output>.AsyncIterator

  init(_ results: StreamResults<Output>) {
    self.iterator = results.makeAsyncIterator()
  }

  mutating func next() async -> StreamResult<Output>? {
    await self.iterator.next()
  }
}

/// The results of a stream that calls back, and that was started with a demand of 0.
struct CalledBackResults<Input: Sendable, Output: Sendable>: ResponseSide {
  let handle: StreamHandle<Input, Output>
  let queue: CallbackQueue<Output>

  func next() async -> StreamResult<Output>? {
    if self.queue.mustAsk() { self.handle.request(1) }
    return await withTaskCancellationHandler {
      await self.queue.next()
    } onCancel: {
      self.handle.cancel()
    }
  }
}
