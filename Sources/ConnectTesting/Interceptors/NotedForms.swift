internal import Connect
internal import NIOCore

// Interceptors in their async form, as the driver's pipeline gets them: what they read and throw is noted.

/// What an interceptor in its async form reports. May be called from anywhere.
struct AsyncReport: Sendable {
  let willReadMessage: @Sendable (_ index: Int) -> Void
  let didReadMessage: @Sendable (_ index: Int) -> Void
  let didThrow: @Sendable () -> Void

  fileprivate func noting<Response>(_ body: () async throws -> Response) async throws -> Response {
    do {
      return try await body()
    } catch {
      self.didThrow()
      throw error
    }
  }

  fileprivate func noting<Input, Output>(
    _ request: StreamRequest<Input>,
    _ body: (StreamRequest<Input>) async throws -> StreamResponse<Output>
  ) async throws -> StreamResponse<Output> {
    try await self.noting {
      let messages = NotedSequence(
        base: request.messages,
        willRead: self.willReadMessage,
        didRead: self.didReadMessage,
        didThrow: {}
      )
      let response = try await body(StreamRequest(head: request.head, messages: PulledSequence(messages)))
      let results = NotedSequence(
        base: response.results,
        willRead: { _ in },
        didRead: { _ in },
        didThrow: self.didThrow
      )
      return StreamResponse(results: PulledSequence(results))
    }
  }
}

struct NotedUnary: AsyncUnaryInterceptor {
  let base: any AsyncUnaryInterceptor
  let report: AsyncReport

  func interceptUnary<Input, Output>(
    _ request: HTTPRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: UnaryNext<Input, Output>
  ) async throws -> ResponseMessage<Output> {
    try await self.report.noting {
      try await self.base.interceptUnary(request, method: method, next: next)
    }
  }
}

struct NotedUnaryBytes: AsyncUnaryByteInterceptor {
  let base: any AsyncUnaryByteInterceptor
  let report: AsyncReport

  func interceptUnaryBytes(
    _ request: HTTPRequest<ByteBuffer>,
    method: MethodInfo,
    next: UnaryByteNext
  ) async throws -> HTTPResponse {
    try await self.report.noting {
      try await self.base.interceptUnaryBytes(request, method: method, next: next)
    }
  }
}

struct NotedStream: AsyncStreamInterceptor {
  let base: any AsyncStreamInterceptor
  let report: AsyncReport

  func interceptStream<Input, Output>(
    _ request: StreamRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: StreamNext<Input, Output>
  ) async throws -> StreamResponse<Output> {
    try await self.report.noting(request) {
      try await self.base.interceptStream($0, method: method, next: next)
    }
  }
}

struct NotedStreamBytes: AsyncStreamByteInterceptor {
  let base: any AsyncStreamByteInterceptor
  let report: AsyncReport

  func interceptStreamBytes(
    _ request: StreamRequest<ByteBuffer>,
    method: MethodInfo,
    next: StreamNext<ByteBuffer, ByteBuffer>
  ) async throws -> StreamResponse<ByteBuffer> {
    try await self.report.noting(request) {
      try await self.base.interceptStreamBytes($0, method: method, next: next)
    }
  }
}

/// A sequence that reports its reads. Each iteration counts from zero.
private struct NotedSequence<Element: Sendable>: AsyncSequence, Sendable {
  let base: PulledSequence<Element>
  let willRead: @Sendable (Int) -> Void
  let didRead: @Sendable (Int) -> Void
  let didThrow: @Sendable () -> Void

  struct AsyncIterator: AsyncIteratorProtocol {
    let sequence: NotedSequence
    var base: PulledSequence<Element>.AsyncIterator
    var index = 0

    mutating func next() async throws -> Element? {
      self.sequence.willRead(self.index)
      do {
        guard let element = try await self.base.next() else { return nil }
        self.sequence.didRead(self.index)
        self.index += 1
        return element
      } catch {
        self.sequence.didThrow()
        throw error
      }
    }
  }

  func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(sequence: self, base: self.base.makeAsyncIterator())
  }
}
