internal import Connect
internal import Synchronization

/// Elements that are given one by one and read by index, by any number of readers, each waiting for the next.
final class PulledBuffer<Element: Sendable>: Sendable {
  private struct Waiter {
    let id: Int
    let index: Int
    let continuation: CheckedContinuation<Element?, any Error>
  }

  private struct State {
    var elements: [Element] = []
    var end: Result<Void, any Error>?
    var waiters: [Waiter] = []
    var nextID = 0
    /// Waits that were cancelled before they began.
    var cancelled: Set<Int> = []
  }

  private let state = Mutex(State())

  /// Adds an element behind the others; nothing happens behind the end.
  func append(_ element: Element) {
    let waiters = self.state.withLock { state -> [Waiter] in
      guard state.end == nil else { return [] }
      state.elements.append(element)
      let index = state.elements.count - 1
      defer { state.waiters.removeAll { $0.index == index } }
      return state.waiters.filter { $0.index == index }
    }
    for waiter in waiters { waiter.continuation.resume(returning: element) }
  }

  /// Ends the sequence, well or with an error.
  func finish(_ end: Result<Void, any Error> = .success(())) {
    let waiters = self.state.withLock { state in
      defer { state.waiters.removeAll() }
      state.end = state.end ?? end
      return state.waiters
    }
    for waiter in waiters { waiter.continuation.resume(with: end.map { nil }) }
  }

  /// The element at `index`, once it is there; nil behind the end.
  ///
  /// - Throws: The error that the sequence ended with, or `CancellationError`.
  func element(at index: Int) async throws -> Element? {
    let id = self.state.withLock { state in
      defer { state.nextID += 1 }
      return state.nextID
    }
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        self.wait(Waiter(id: id, index: index, continuation: continuation))
      }
    } onCancel: {
      let waiters = self.state.withLock { state in
        defer { state.waiters.removeAll { $0.id == id } }
        let waiters = state.waiters.filter { $0.id == id }
        if waiters.isEmpty { state.cancelled.insert(id) }
        return waiters
      }
      for waiter in waiters { waiter.continuation.resume(throwing: CancellationError()) }
    }
  }

  private func wait(_ waiter: Waiter) {
    let result = self.state.withLock { state -> Result<Element?, any Error>? in
      if state.cancelled.remove(waiter.id) != nil { return .failure(CancellationError()) }
      if waiter.index < state.elements.count { return .success(state.elements[waiter.index]) }
      if let end = state.end { return end.map { nil } }
      state.waiters.append(waiter)
      return nil
    }
    if let result { waiter.continuation.resume(with: result) }
  }

  /// All elements, from the first on.
  ///
  /// - Parameters:
  ///   - willRead: Called when the element at an index is asked for.
  ///   - didRead: Called when it was given out.
  func sequence(
    willRead: @escaping @Sendable (Int) -> Void,
    didRead: @escaping @Sendable (Int) -> Void
  ) -> PulledSequence<Element> {
    PulledSequence(Reading(buffer: self, willRead: willRead, didRead: didRead))
  }

  private struct Reading: AsyncSequence, Sendable {
    let buffer: PulledBuffer<Element>
    let willRead: @Sendable (Int) -> Void
    let didRead: @Sendable (Int) -> Void

    struct AsyncIterator: AsyncIteratorProtocol {
      let reading: Reading
      var index = 0

      mutating func next() async throws -> Element? {
        self.reading.willRead(self.index)
        guard let element = try await self.reading.buffer.element(at: self.index) else { return nil }
        self.reading.didRead(self.index)
        self.index += 1
        return element
      }
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(reading: self) }
  }
}
