internal import Connect
internal import NIOCore

// The async form of streams, with a record of what it reads.

struct RecordedStream: AsyncStreamInterceptor {
  let base: any AsyncStreamInterceptor
  /// A `MethodSpec` of the types of messages.
  let method: any Sendable
  let recorder: CallRecorder

  func interceptStream<Input, Output>(
    _ request: StreamRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: StreamNext<Input, Output>
  ) async throws -> StreamResponse<Output> {
    let method = self.method as? MethodSpec<Input, Output> ?? method
    let next = StreamNext { self.recorder.reading(try await next($0)) }
    return try await self.base.interceptStream(self.recorder.reading(request), method: method, next: next)
  }
}

struct RecordedStreamBytes: AsyncStreamByteInterceptor {
  let base: any AsyncStreamByteInterceptor
  let recorder: CallRecorder

  func interceptStreamBytes(
    _ request: StreamRequest<ByteBuffer>,
    method: MethodInfo,
    next: StreamNext<ByteBuffer, ByteBuffer>
  ) async throws -> StreamResponse<ByteBuffer> {
    let next = StreamNext { self.recorder.reading(try await next($0)) }
    return try await self.base.interceptStreamBytes(
      self.recorder.reading(request),
      method: method,
      next: next
    )
  }
}

/// Records what the async form does in a call, from anywhere.
struct CallRecorder: Sendable {
  private let call: Confined<DriverCall>
  private let executor: VirtualExecutor

  init(_ call: DriverCall) {
    self.executor = call.executor
    self.call = Confined(call, to: call.executor)
  }

  private func run(_ work: @escaping @Sendable (DriverCall) -> Void) {
    self.executor.run { work(self.call.value) }
  }

  /// Records which messages are read.
  fileprivate func reading<Input>(_ request: StreamRequest<Input>) -> StreamRequest<Input> {
    let messages = request.messages.recorded(willRead: {
      self.run { $0.recorder?.messages.willRead(orDropped: StreamDataVerb<Input>.drop) }
    }) { index in
      self.run { $0.recorder?.messages.didRead(index) }
    }
    return StreamRequest(head: request.head, messages: messages)
  }

  /// Records which results are read.
  fileprivate func reading<Output>(_ response: StreamResponse<Output>) -> StreamResponse<Output> {
    let results = response.results.recorded(willRead: {
      self.run { $0.recorder?.willReadResult(orDropped: StreamResultVerb<Output>.drop) }
    }) { _ in
      self.run { $0.didReadResult() }
    }
    return StreamResponse(results: results)
  }
}

extension PulledSequence {
  /// The same sequence with a report of its reads. Each iteration counts from zero.
  fileprivate func recorded(
    willRead: @escaping @Sendable () -> Void,
    didRead: @escaping @Sendable (_ index: Int) -> Void
  ) -> PulledSequence {
    PulledSequence(RecordedSequence(base: self, willRead: willRead, didRead: didRead))
  }
}

private struct RecordedSequence<Element: Sendable>: AsyncSequence, Sendable {
  let base: PulledSequence<Element>
  let willRead: @Sendable () -> Void
  let didRead: @Sendable (_ index: Int) -> Void

  struct AsyncIterator: AsyncIteratorProtocol {
    let sequence: RecordedSequence
    var base: PulledSequence<Element>.AsyncIterator
    var index = 0

    mutating func next() async throws -> Element? {
      self.sequence.willRead()
      guard let element = try await self.base.next() else { return nil }
      self.sequence.didRead(self.index)
      self.index += 1
      return element
    }
  }

  func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(sequence: self, base: self.base.makeAsyncIterator())
  }
}
