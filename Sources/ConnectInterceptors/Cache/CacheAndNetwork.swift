public import Connect

/// The responses of ``Connect/ProtocolClient/cacheAndNetwork(_:_:options:)``, at most two. To be iterated once.
public struct CacheAndNetwork<Output: Sendable>: AsyncSequence, Sendable {
  public typealias Element = ResponseMessage<Output>

  public struct AsyncIterator: AsyncIteratorProtocol {
    var base: AsyncStream<Element>.Iterator

    public mutating func next() async -> Element? { await self.base.next() }

    public mutating func next(isolation actor: isolated (any Actor)?) async -> Element? {
      await self.base.next(isolation: actor)
    }
  }

  fileprivate let responses: AsyncStream<Element>

  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(base: self.responses.makeAsyncIterator())
  }
}

extension ProtocolClient {
  /// Makes a unary call. Gives first the cached response, if there is a fresh one, then the network's response, which may
  /// be an error.
  ///
  /// ```swift
  /// for await response in client.cacheAndNetwork(lookup, request) { show(response) }
  /// ```
  ///
  /// The cache and the network are asked at the same time. Without a ``CacheReadInterceptor`` among the client's
  /// interceptors, or for a method that may have side effects, only the network answers. Both calls end when the sequence
  /// is released, or when the task that iterates it is cancelled.
  public func cacheAndNetwork<Input, Output>(
    _ method: MethodSpec<Input, Output>,
    _ request: Input,
    options: CallOptions = CallOptions()
  ) -> CacheAndNetwork<Output> {
    var cacheOptions = options
    cacheOptions.context[CachePolicy.self] = .cacheOnly
    // Without a cache interceptor, nothing else keeps the call from the network.
    cacheOptions.interceptors.append { _ in CacheOnlyInterceptor() }
    var networkOptions = options
    networkOptions.context[CachePolicy.self] = .networkOnly
    let (fromCache, fromNetwork) = (cacheOptions, networkOptions)
    let responses = AsyncStream<ResponseMessage<Output>> { continuation in
      let task = Task(executorPreference: self.taskExecutor.unlessOfCalls) {
        async let network = self.unary(method, request, options: fromNetwork)
        if method.idempotencyLevel == .noSideEffects {
          let cached = await self.unary(method, request, options: fromCache)
          if cached.error == nil { continuation.yield(cached) }
        }
        continuation.yield(await network)
        continuation.finish()
      }
      continuation.onTermination = { _ in task.cancel() }
    }
    return CacheAndNetwork(responses: responses)
  }
}
