internal import Connect
internal import NIOCore
internal import Synchronization

/// An interceptor of unary calls in its async form. Its function runs in a task on the driver's executor; `next`
/// waits there until the driver is given a response.
///
/// A visit keeps its subject, so a subject does not keep its visits.
final class AsyncUnarySubject<Message: Sendable, Response: Sendable>: UnarySubject {
  typealias Request = HTTPRequest<Message>
  typealias Next = @Sendable (Request) async throws -> Response
  typealias RequestVisit = HookVisit<RequestVerb<Request, Response>>
  typealias ResponseVisit = HookVisit<ResponseVerb<Request, Response>>

  /// What the interceptor is at, and so what its next step means.
  private enum Visit {
    case none
    case request(Weak<RequestVisit>)
    case response(Weak<ResponseVisit>, since: Duration)
  }

  private struct State {
    var visit = Visit.none
    /// Where the `next` that has not returned waits for its response.
    var pendingNext: PulledBuffer<Response>?
    var task: Task<Void, Never>?
    /// What the interceptor returned though no response had been given to its `next`.
    var early: Response?
    var hasEnded = false
  }

  private let name: String
  private let intercept: @Sendable (Request, @escaping Next) async throws -> Response
  private let failure: @Sendable (ConnectError) -> Response
  private let time: DriverTime
  private let state = Mutex(State())

  /// - Parameters:
  ///   - name: The interceptor's, and of its level.
  ///   - intercept: Its function.
  ///   - failure: The response for an error.
  private init(
    _ name: String,
    _ time: DriverTime,
    intercept: @escaping @Sendable (Request, @escaping Next) async throws -> Response,
    failure: @escaping @Sendable (ConnectError) -> Response
  ) {
    self.name = name
    self.intercept = intercept
    self.failure = failure
    self.time = time
  }

  convenience init<Output>(
    _ name: String,
    _ interceptor: any AsyncUnaryInterceptor,
    _ method: MethodSpec<Message, Output>,
    _ time: DriverTime
  ) where Response == ResponseMessage<Output> {
    self.init(
      "\(name), unary async",
      time,
      intercept: { try await interceptor.interceptUnary($0, method: method, next: UnaryNext($1)) },
      failure: { ResponseMessage(error: $0) }
    )
  }

  convenience init(
    _ name: String,
    _ interceptor: any AsyncUnaryByteInterceptor,
    _ method: MethodInfo,
    _ time: DriverTime
  )
  where Message == ByteBuffer, Response == HTTPResponse {
    self.init(
      "\(name), unary async byte",
      time,
      intercept: { try await interceptor.interceptUnaryBytes($0, method: method, next: UnaryByteNext($1)) },
      failure: { HTTPResponse(error: $0) }
    )
  }

  func label(_ hook: String) -> String { "\(self.name) \(hook)" }

  // MARK: From the driver

  func request(_ request: Request, _ visit: RequestVisit) {
    // A new call of the function, as when an interceptor outside asks for a retry.
    self.stop()
    self.state.withLock { $0.visit = .request(Weak(visit)) }
    let task = Task(executorPreference: self.time.executor) {
      let response: Result<Response, ConnectError>
      do {
        response = .success(
          try await self.intercept(request) { try await self.next($0) }
        )
      } catch {
        response = .failure(ConnectError(error))
      }
      guard !Task.isCancelled else { return }
      self.finish(with: response)
    }
    self.state.withLock { $0.task = task }
  }

  func response(_ response: Response, _ visit: ResponseVisit) {
    let (pending, early) = self.state.withLock { state in
      defer {
        state.pendingNext = nil
        state.early = nil
      }
      if state.pendingNext != nil { state.visit = .response(Weak(visit), since: self.time.executor.now) }
      return (state.pendingNext, state.early)
    }
    if let pending {
      pending.append(response)
    } else if let early {
      visit.add(.proceed(early))
    } else {
      visit.report(.notWaiting)
    }
  }

  func metrics(_ metrics: HTTPMetrics, _ visit: HookVisit<HTTPMetrics>) {
    visit.add(metrics)
  }

  /// No more values come.
  func end() {
    self.state.withLock { $0.hasEnded = true }
    self.stop()
  }

  private func stop() {
    let (task, pending) = self.state.withLock { state in
      defer {
        state.task = nil
        state.pendingNext = nil
        state.early = nil
        state.visit = .none
      }
      return (state.task, state.pendingNext)
    }
    task?.cancel()
    pending?.finish(.failure(CancellationError()))
  }

  // MARK: From the interceptor

  private func next(_ request: Request) async throws -> Response {
    let pending = try self.begin(request)
    defer {
      self.state.withLock { if $0.pendingNext === pending { $0.pendingNext = nil } }
    }
    guard let response = try await pending.element(at: 0) else { throw CancellationError() }
    return response
  }

  private func begin(_ request: Request) throws -> PulledBuffer<Response> {
    try Task.checkCancellation()
    let pending = PulledBuffer<Response>()
    try self.state.withLock { state in
      guard !state.hasEnded else { throw CancellationError() }
      guard state.pendingNext == nil else {
        throw ConnectError(
          code: .internalError,
          message: "an interceptor called next while an earlier next was pending"
        )
      }
      state.pendingNext = pending
    }
    switch self.takeVisit() {
    case .none: break
    case .request(let visit): visit.object?.add(.proceed(.success(request)))
    case .response(let visit, let start):
      visit.object?.add(.retry(request, after: self.time.executor.now - start))
    }
    return pending
  }

  private func finish(with result: Result<Response, ConnectError>) {
    switch (self.takeVisit(), result) {
    case (.request(let visit), .success(let response)): visit.object?.add(.answer(response))
    case (.request(let visit), .failure(let error)): visit.object?.add(.proceed(.failure(error)))
    case (.response(let visit, _), _): visit.object?.add(.proceed(self.response(result)))
    case (.none, _): self.state.withLock { $0.early = self.response(result) }
    }
  }

  private func response(_ result: Result<Response, ConnectError>) -> Response {
    switch result {
    case .success(let response): response
    case .failure(let error): self.failure(error)
    }
  }

  private func takeVisit() -> Visit {
    self.state.withLock { state in
      defer { state.visit = .none }
      return state.visit
    }
  }
}
