import Connect
import ConnectTesting
import NIOCore

extension ResponseMessage where Output == Text {
  var outcome: RandomOutcome {
    switch self.result {
    case .success(let text): "ok \(text.text)"
    case .failure(let error): error.randomOutcome
    }
  }

  init(outcome: RandomOutcome) {
    let parts = outcome.split(separator: " ", maxSplits: 1).map(String.init)
    if parts[0] == "ok" {
      self.init(message: Text(parts[1]))
    } else {
      self.init(
        error: ConnectError(code: parts[0] == "internal" ? .internalError : .dataLoss, message: parts[1])
      )
    }
  }
}

extension ConnectError {
  /// The code, and the message unless the call itself has found the error.
  var randomOutcome: RandomOutcome {
    switch self.code {
    case .canceled, .deadlineExceeded: "\(self.code)"
    default: "\(self.code) \(self.message ?? "")"
    }
  }
}

extension HTTPResponse {
  var outcome: RandomOutcome {
    if let error = self.error { return error.randomOutcome }
    return "ok \(String(buffer: self.message).dropFirst().dropLast())"
  }

  init(outcome: RandomOutcome) {
    let response = ResponseMessage<Text>(outcome: outcome)
    switch response.result {
    case .success(let text): self.init(message: ByteBuffer(string: "\"\(text.text)\""))
    case .failure(let error): self.init(error: error)
    }
  }
}

/// Counts visits by name.
final class Visits: Sendable {
  private let counts = Box<[String: Int]>([:])

  func next(_ name: String) -> Int {
    var counts = self.counts.value
    defer { self.counts.value = counts }
    counts[name, default: 0] += 1
    return (counts[name] ?? 1) - 1
  }
}

extension RandomChain.Timing {
  func run(on executor: VirtualExecutor, _ work: @escaping @Sendable () -> Void) {
    switch self {
    case .atOnce: work()
    case .later: executor.execute(work)
    case .elsewhere: Task.detached { work() }
    }
  }
}

extension RandomChain.Interceptor {
  /// - Parameter lives: Is told of something that lives as long as the hooks.
  func factory(
    _ events: Events,
    _ ends: RandomEnds,
    _ executor: VirtualExecutor,
    _ lives: Lives
  ) -> InterceptorFactory {
    { _ in
      let visits = Visits()
      lives.add(visits, "interceptor")
      var hooks = TestInterceptor()
      if let call = self.call {
        hooks.call = call.function { event in
          _ = visits.next(event)
          events.add(event)
        }
      }
      if let end = self.end {
        hooks.call.endFunction = ends.function(end, { $0.error?.randomOutcome ?? "ok" }) { events.all.count }
      }
      if case .hooks(let script)? = self.messages?.kind, let name = self.messages?.name {
        hooks.unaryMessages = script.functions(name, events, visits, executor, describe: \.outcome) {
          ResponseMessage(outcome: $0)
        }
      }
      if case .hooks(let script)? = self.bytes?.kind, let name = self.bytes?.name {
        hooks.unaryBytes = script.functions(name, events, visits, executor, describe: \.outcome) {
          HTTPResponse(outcome: $0)
        }
        .placed(self.placement)
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

/// An interceptor in the closure form and in an async one.
private struct Both: AsyncUnaryInterceptor, AsyncUnaryByteInterceptor, @unchecked Sendable {
  // Never changed, and its hooks are called on the call's executor only.
  let hooks: TestInterceptor
  let script: RandomChain.Async
  let isOfBytes: Bool
  let name: String
  let events: Events

  var asyncUnaryForm: AsyncUnaryForm? { self.isOfBytes ? .bytes(self) : .messages(self) }

  func callFunction(_ method: MethodInfo) -> CallFunction { self.hooks.callFunction(method) }
  func unaryFunction() -> UnaryFunction { self.hooks.unaryFunction() }

  func unaryMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> UnaryMessageFunction<Input, Output> {
    self.hooks.unaryMessageFunction(method)
  }

  func interceptUnary<Input, Output>(
    _ request: HTTPRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: UnaryNext<Input, Output>
  ) async throws -> ResponseMessage<Output> {
    try await self.intercept(
      describe: { ($0 as? ResponseMessage<Text>)?.outcome ?? "not a text" },
      make: { outcome in
        guard let response = ResponseMessage<Text>(outcome: outcome) as? ResponseMessage<Output> else {
          return ResponseMessage(error: ConnectError(code: .unimplemented))
        }
        return response
      },
      next: { try await next(request) }
    )
  }

  func interceptUnaryBytes(
    _ request: HTTPRequest<ByteBuffer>,
    method: MethodInfo,
    next: UnaryByteNext
  ) async throws -> HTTPResponse {
    try await self.intercept(
      describe: \.outcome,
      make: { HTTPResponse(outcome: $0) },
      next: { try await next(request) }
    )
  }

  private func intercept<Response: Sendable>(
    describe: (Response) -> RandomOutcome,
    make: (RandomOutcome) -> Response,
    next: () async throws -> Response
  ) async throws -> Response {
    self.events.add("\(self.name) request")
    await Task.yield()
    switch self.script {
    case .fail: throw ConnectError(code: .internalError, message: self.name)
    case .answer: return make("ok \(self.name)")
    case .pass, .replace, .retry: break
    }
    var response = try await next()
    if case .retry(let count) = self.script {
      for _ in 0..<count where !describe(response).hasPrefix("ok") { response = try await next() }
    }
    self.events.add("\(self.name) response \(describe(response))")
    if case .replace = self.script { return make("data_loss \(self.name)") }
    return response
  }
}

extension RandomChain.Hooks {
  func functions<Message: Sendable, Response: Sendable>(
    _ name: String,
    _ events: Events,
    _ visits: Visits,
    _ executor: VirtualExecutor,
    describe: @escaping @Sendable (Response) -> RandomOutcome,
    make: @escaping @Sendable (RandomOutcome) -> Response
  ) -> UnaryHooks<Message, Response> {
    let requestAction: @Sendable () -> RandomChain.RequestAction = {
      events.add("\(name) request")
      return self.requests[visits.next("request \(name)") % self.requests.count]
    }
    let responseAction: @Sendable (Response) -> RandomChain.ResponseAction = { response in
      events.add("\(name) response \(describe(response))")
      return self.responses[visits.next("response \(name)") % self.responses.count]
    }
    var hooks = self.updates(name, requestAction, responseAction, make: make) as UnaryHooks<Message, Response>
    if !self.isRequestUpdate {
      hooks.requestFunction = { request, proceed in
        let action = requestAction()
        self.timing.run(on: executor) {
          switch action {
          case .pass: proceed(.success(request))
          case .fail: proceed(.failure(ConnectError(code: .internalError, message: name)))
          case .answer: proceed.answer(make("ok \(name)"))
          }
        }
      }
    }
    if !self.isResponseUpdate {
      hooks.responseFunction = { response, proceed in
        let action = responseAction(response)
        self.timing.run(on: executor) {
          switch action {
          case .pass: proceed(response)
          case .error: proceed(make("data_loss \(name)"))
          case .response: proceed(make("ok \(name)"))
          case .retry: proceed.retry()
          case .retryLater: proceed.retry(after: .seconds(1))
          }
        }
      }
    }
    return hooks
  }

  /// The hooks in the synchronous form.
  private func updates<Message: Sendable, Response: Sendable>(
    _ name: String,
    _ requestAction: @escaping @Sendable () -> RandomChain.RequestAction,
    _ responseAction: @escaping @Sendable (Response) -> RandomChain.ResponseAction,
    make: @escaping @Sendable (RandomOutcome) -> Response
  ) -> UnaryHooks<Message, Response> {
    let updateRequest: UnaryHooks<Message, Response>.RequestUpdate = { _ in
      if requestAction() == .fail { throw ConnectError(code: .internalError, message: name) }
    }
    let updateResponse: UnaryHooks<Message, Response>.ResponseUpdate = { response in
      switch responseAction(response) {
      case .pass: break
      case .error: response = make("data_loss \(name)")
      case .response: response = make("ok \(name)")
      case .retry: return .retry(after: .zero)
      case .retryLater: return .retry(after: .seconds(1))
      }
      return .proceed
    }
    return switch (self.isRequestUpdate, self.isResponseUpdate) {
    case (true, true): UnaryHooks(updateRequest: updateRequest, updateResponse: updateResponse)
    case (true, false): UnaryHooks(updateRequest: updateRequest)
    case (false, true): UnaryHooks(updateResponse: updateResponse)
    case (false, false): UnaryHooks()
    }
  }
}
