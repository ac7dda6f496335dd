/// A stream's request as an ``AsyncStreamInterceptor`` sees it: the head, and the messages as a sequence.
public struct StreamRequest<Input: Sendable>: Sendable {
  /// The request without its messages: URL, headers, context.
  public var head: HTTPRequest<Void>
  /// The messages that the caller sends, in order. Ends when the caller ends the request.
  public var messages: PulledSequence<Input>

  /// A request with a head and any messages, to pass to ``StreamNext``.
  public init(head: HTTPRequest<Void>, messages: PulledSequence<Input>) {
    self.head = head
    self.messages = messages
  }

  /// The same request with each message transformed.
  public func map(
    _ transform: @escaping @Sendable (Input) async throws -> Input
  ) -> StreamRequest<Input> {
    StreamRequest(head: self.head, messages: self.messages.mapped(transform))
  }
}

/// A stream's response as an ``AsyncStreamInterceptor`` sees it: headers, messages and the end as a sequence
/// that is pulled.
public struct StreamResponse<Output: Sendable>: Sendable {
  /// Headers, messages, and the end. Throws only if the attempt was abandoned; errors of the RPC are in the end.
  public var results: PulledSequence<StreamResult<Output>>

  /// A response of any results. Results that end without `.complete` are a success.
  public init(results: PulledSequence<StreamResult<Output>>) {
    self.results = results
  }

  /// A response that needs no network.
  public init(_ answer: StreamAnswer<Output>) {
    self.init(results: PulledSequence(answer.results.map { StreamResult($0) }))
  }

  /// The same response with each message transformed. What `transform` throws ends the stream.
  public func map(
    _ transform: @escaping @Sendable (Output) async throws -> Output
  ) -> StreamResponse<Output> {
    StreamResponse(
      results: self.results.mapped { result in
        guard case .message(let message) = result else { return result }
        return .message(try await transform(message))
      }
    )
  }

  /// The same response with the error at its end, if it has one, replaced.
  ///
  /// - Parameter transform: Returns another error, or nil for a stream that ends well. If `transform` throws, the
  ///   stream ends with the thrown error; a thrown ``RetryRequest`` asks for another attempt.
  public func mapErrors(
    _ transform: @escaping @Sendable (ConnectError) async throws -> ConnectError?
  ) -> StreamResponse<Output> {
    StreamResponse(
      results: self.results.mapped { result in
        guard case .complete(_, let error?, let trailers) = result else { return result }
        do {
          guard let mapped = try await transform(error) else {
            return .complete(code: .ok, error: nil, trailers: trailers)
          }
          return .complete(code: mapped.code, error: mapped, trailers: trailers)
        } catch let retry as RetryRequest {
          throw retry
        } catch {
          return .failed(ConnectError(error))
        }
      }
    )
  }

  /// The same response; if it ends with an error, another response continues in the place of the end.
  ///
  /// Headers are held back until the first message or the end. So a response that has shown no message can be replaced
  /// as a whole, also by a retry:
  ///
  /// ```swift
  /// func interceptStream<Input, Output>(
  ///   _ request: StreamRequest<Input>,
  ///   method: MethodSpec<Input, Output>,
  ///   next: StreamNext<Input, Output>
  /// ) async throws -> StreamResponse<Output> {
  ///   try await next(request).recoverErrors { error in
  ///     error.code == .unavailable ? try await next(request) : nil
  ///   }
  /// }
  /// ```
  ///
  /// After a message, the other response's messages and end go on, without its headers; a retry is refused then.
  ///
  /// - Parameter recover: Returns the other response, or nil for the error as it is. If `recover` throws, the stream
  ///   ends with the thrown error. `recover` does not receive errors of the other response.
  public func recoverErrors(
    _ recover: @escaping @Sendable (ConnectError) async throws -> StreamResponse<Output>?
  ) -> StreamResponse<Output> {
    let results = self.results
    return StreamResponse(
      results: PulledSequence {
        let recovery = StreamRecovery(pull: results.makePull(), recover: recover)
        return { try await recovery.next() }
      }
    )
  }
}

/// An asynchronous sequence of one static type that produces an element only on demand.
public struct PulledSequence<Element: Sendable>: AsyncSequence, Sendable {
  typealias Pull = () async throws -> Element?

  let makePull: @Sendable () -> Pull

  init(makePull: @escaping @Sendable () -> Pull) {
    self.makePull = makePull
  }

  /// A sequence of the elements of another one.
  public init<Base: AsyncSequence & Sendable>(_ base: Base) where Base.Element == Element {
    self.init {
      var iterator = base.makeAsyncIterator()
      return { try await iterator.next() }
    }
  }

  /// A sequence of known elements.
  public init(_ elements: [Element]) {
    self.init {
      var iterator = elements.makeIterator()
      return { iterator.next() }
    }
  }

  /// A sequence that transforms each element on demand.
  public func mapped<Other: Sendable>(
    _ transform: @escaping @Sendable (Element) async throws -> Other
  ) -> PulledSequence<Other> {
    let makePull = self.makePull
    return PulledSequence<Other> {
      let pull = makePull()
      return {
        guard let element = try await pull() else { return nil }
        return try await transform(element)
      }
    }
  }

  public struct AsyncIterator: AsyncIteratorProtocol {
    let pull: Pull

    public mutating func next() async throws -> Element? {
      try await self.pull()
    }
  }

  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(pull: self.makePull())
  }
}

/// The results of a response, and of another one in the place of its error; see ``StreamResponse/recoverErrors(_:)``.
private final class StreamRecovery<Output: Sendable> {
  typealias Result = StreamResult<Output>
  typealias Recover = @Sendable (ConnectError) async throws -> StreamResponse<Output>?

  private var pull: PulledSequence<Result>.Pull
  /// Nil once it was called.
  private var recover: Recover?
  /// Headers that may still be replaced.
  private var heldHeaders: Headers?
  /// The result after headers that were held back.
  private var heldResult: Result?
  private var hasShown = false

  init(pull: @escaping PulledSequence<Result>.Pull, recover: @escaping Recover) {
    self.pull = pull
    self.recover = recover
  }

  func next() async throws -> Result? {
    if let result = self.heldResult.take() { return result }
    while let result = try await self.pull() {
      switch result {
      case .headers(let headers):
        if self.recover != nil {
          self.heldHeaders = headers
        } else if !self.hasShown {
          return self.show(result)
        }
      case .complete(_, let error?, _):
        guard let end = await self.replace(error, result) else { continue }
        return self.show(end)
      case .message, .complete:
        return self.show(result)
      }
    }
    return self.heldHeaders.take().map { .headers($0) }
  }

  /// - Returns: The end that stays; nil if another response goes on.
  private func replace(_ error: ConnectError, _ end: Result) async -> Result? {
    guard let recover = self.recover.take() else { return end }
    do {
      guard let response = try await recover(error) else { return end }
      self.heldHeaders = nil
      self.pull = response.results.makePull()
      return nil
    } catch {
      return .failed(ConnectError(error))
    }
  }

  /// Returns `result`, or the headers that were held back before it.
  private func show(_ result: Result) -> Result {
    self.hasShown = true
    guard let headers = self.heldHeaders.take() else { return result }
    self.heldResult = result
    return .headers(headers)
  }
}
