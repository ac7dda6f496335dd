import Connect
import ConnectTesting
import NIOCore

/// What each stage saw, in order.
final class StageEvents: Sendable {
  private let events: Events

  init() { self.events = Events() }

  /// The same events, for one interceptor.
  init(of other: StageEvents) { self.events = other.events }

  func add(_ event: String, at stage: String) { self.events.add("\(stage)|\(event)") }

  /// The events of all stages in one order, each with its stage in front.
  var list: [String] { self.events.all }

  var all: [String: [String]] {
    Dictionary(grouping: self.events.all.map { $0.split(separator: "|", maxSplits: 1).map(String.init) }) {
      $0[0]
    }
    .mapValues { $0.map { $0[1] } }
  }
}

extension RandomStreamChain.Interceptor {
  /// - Parameter lives: Is told of something that lives as long as the hooks.
  func factory(
    _ allEvents: StageEvents,
    _ ends: RandomEnds,
    _ executor: VirtualExecutor,
    _ lives: Lives
  ) -> InterceptorFactory {
    { _ in
      let events = StageEvents(of: allEvents)
      lives.add(events, "interceptor")
      var hooks = TestInterceptor()
      if let call = self.call { hooks.call = call.function { events.add($0, at: "calls") } }
      if let end = self.end {
        hooks.call.endFunction = ends.function(end, { "\($0.code)" }) { events.list.count }
      }
      if case .hooks(let script)? = self.messages?.kind, let name = self.messages?.name {
        hooks.streamMessages = script.functions(name, events, executor, describe: \.short, text: \.text) {
          Text($0)
        }
      }
      if case .hooks(let script)? = self.bytes?.kind, let name = self.bytes?.name {
        hooks.streamBytes = script.functions(
          name,
          events,
          executor,
          describe: { $0.message.map { String(String(buffer: $0).dropFirst().dropLast()) } ?? $0.short },
          text: { String(String(buffer: $0).dropFirst().dropLast()) },
          make: { ByteBuffer(string: "\"\($0)\"") }
        )
      }
      guard case .async(let script)? = self.async?.kind, let name = self.async?.name else { return hooks }
      return Both(
        hooks: hooks,
        script: script,
        isOfBytes: self.isAsyncOfBytes,
        name: name,
        events: events
      )
    }
  }
}

extension RandomStreamChain.Hooks {
  fileprivate func functions<Message: Sendable>(
    _ name: String,
    _ events: StageEvents,
    _ executor: VirtualExecutor,
    describe: @escaping @Sendable (StreamResult<Message>) -> String,
    text: @escaping @Sendable (Message) -> String,
    make: @escaping @Sendable (String) -> Message
  ) -> StreamHooks<Message, Message> {
    var heads = 0
    var ends = 0
    var requests = 0
    var results = 0
    return StreamHooks(
      requestFunction: { request, proceed in
        events.add("head", at: name)
        let action = self.heads[heads % self.heads.count]
        heads += 1
        requests = 0
        results = 0
        self.timing.run(on: executor) {
          switch action {
          case .pass: proceed(.success(request))
          case .fail: proceed(.failure(ConnectError(code: .internalError)))
          case .answer: proceed.answer(StreamAnswer(messages: [make(name)]))
          }
        }
      },
      requestMessageFunction: { message, proceed in
        let action = self.requests[requests % self.requests.count]
        requests += 1
        self.timing.run(on: executor) {
          switch action {
          case .pass: proceed(message)
          case .change: proceed(make(text(message) + ">"))
          case .drop: proceed.drop()
          }
        }
      },
      streamResultFunction: { result, proceed in
        events.add(describe(result), at: name)
        switch result {
        case .headers:
          self.timing.run(on: executor) { proceed.drop() }
        case .message(let message):
          let action = self.results[results % self.results.count]
          results += 1
          self.timing.run(on: executor) {
            switch action {
            case .pass: proceed(result)
            case .change: proceed(.message(make(text(message) + "<")))
            case .drop: proceed.drop()
            }
          }
        case .complete:
          let action = self.ends[ends % self.ends.count]
          ends += 1
          self.timing.run(on: executor) {
            switch action {
            case .pass: proceed(result)
            case .error: proceed(.failed(ConnectError(code: .dataLoss)))
            case .fine: proceed(.complete(code: .ok, error: nil, trailers: Headers()))
            case .message: proceed(.message(make(name)))
            case .retry: proceed.retry()
            case .retryLater: proceed.retry(after: .seconds(1))
            }
          }
        }
      }
    )
  }
}

/// An interceptor in the closure form and in an async one.
private struct Both: AsyncStreamInterceptor, AsyncStreamByteInterceptor, @unchecked Sendable {
  // Never changed, and its hooks are called on the call's executor only.
  let hooks: TestInterceptor
  let script: RandomChain.Async
  let isOfBytes: Bool
  let name: String
  let events: StageEvents

  var asyncStreamForm: AsyncStreamForm? { self.isOfBytes ? .bytes(self) : .messages(self) }

  func callFunction(_ method: MethodInfo) -> CallFunction { self.hooks.callFunction(method) }
  func streamFunction() -> StreamFunction { self.hooks.streamFunction() }

  func streamMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> StreamMessageFunction<Input, Output> {
    self.hooks.streamMessageFunction(method)
  }

  func interceptStream<Input, Output>(
    _ request: StreamRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: StreamNext<Input, Output>
  ) async throws -> StreamResponse<Output> {
    guard let request = request as? StreamRequest<Text>, let next = next as? StreamNext<Text, Text>,
      let response = try await self.intercept(request, next, text: \.text, make: { Text($0) })
        as? StreamResponse<Output>
    else { throw ConnectError(code: .unimplemented) }
    return response
  }

  func interceptStreamBytes(
    _ request: StreamRequest<ByteBuffer>,
    method: MethodInfo,
    next: StreamNext<ByteBuffer, ByteBuffer>
  ) async throws -> StreamResponse<ByteBuffer> {
    try await self.intercept(
      request,
      next,
      text: { String(String(buffer: $0).dropFirst().dropLast()) },
      make: { ByteBuffer(string: "\"\($0)\"") }
    )
  }

  private func intercept<Message: Sendable>(
    _ request: StreamRequest<Message>,
    _ next: StreamNext<Message, Message>,
    text: @escaping @Sendable (Message) -> String,
    make: @escaping @Sendable (String) -> Message
  ) async throws -> StreamResponse<Message> {
    self.events.add("head", at: self.name)
    await Task.yield()
    let recorded: @Sendable (StreamResponse<Message>) -> StreamResponse<Message> = { response in
      StreamResponse(
        results: response.results.mapped { result in
          self.events.add(Self.describe(result, text), at: self.name)
          return result
        }
      )
    }
    switch self.script {
    case .fail:
      throw ConnectError(code: .internalError)
    case .answer:
      return StreamResponse(StreamAnswer(messages: [make(self.name)]))
    case .pass:
      return recorded(try await next(request))
    case .replace:
      return recorded(try await next(request)).map { make(text($0) + "~") }
    case .retry(let count):
      var response = try await next(request)
      var first = try await response.results.first { _ in true }
      for _ in 0..<count {
        guard case .complete(.aborted, .some, _)? = first else { break }
        do {
          response = try await next(request)
        } catch {
          break
        }
        first = try await response.results.first { _ in true }
      }
      return recorded(
        StreamResponse(results: PulledSequence([first].compactMap { $0 }).followed(by: response.results))
      )
    }
  }

  private static func describe<Message>(
    _ result: StreamResult<Message>,
    _ text: (Message) -> String
  ) -> String {
    switch result {
    case .headers: "headers"
    case .message(let message): text(message)
    case .complete(let code, _, _): "end \(code)"
    }
  }
}
