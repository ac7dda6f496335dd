internal import Connect
internal import NIOCore
internal import Synchronization

/// An interceptor of streams in its async form. Its function runs in a task on the driver's executor, and so do the
/// readers of what it gives inwards and outwards.
///
/// A visit keeps its subject, so a subject does not keep its visits.
final class AsyncStreamSubject<Input: Sendable, Output: Sendable>: StreamSubject {
  typealias RequestVisit = HookVisit<RequestVerb<HTTPRequest<Void>, StreamAnswer<Output>>>
  typealias MessageVisit = HookVisit<StreamDataVerb<Input>>
  typealias ResultVisit = HookVisit<StreamResultVerb<Output>>
  typealias Next = @Sendable (StreamRequest<Input>) async throws -> StreamResponse<Output>
  typealias Intercept =
    @Sendable (StreamRequest<Input>, @escaping Next) async throws -> StreamResponse<Output>

  private struct State {
    /// Whether the head has led to nothing yet.
    var isAtHead = false
    weak var request: RequestVisit?
    var messages = PulledBuffer<Input>()
    var messageVisits = Visits<StreamDataVerb<Input>>()
    /// Results of the attempt that `next` started last; nil before the first.
    var results: PulledBuffer<StreamResult<Output>>?
    var resultVisits = Visits<StreamResultVerb<Output>>()
    var lastResultTime = Duration.zero
    var tasks: [Task<Void, Never>] = []
    var hasEnded = false

    /// The interceptor has given all that it gives outwards, and reads no results any more.
    mutating func finish() {
      self.isAtHead = false
      self.results = nil
      self.resultVisits.report(.notWaiting)
    }
  }

  private let name: String
  private let intercept: Intercept
  private let time: DriverTime
  private let state = Mutex(State())

  /// - Parameters:
  ///   - name: The interceptor's, and of its level.
  ///   - intercept: Its function.
  private init(_ name: String, _ time: DriverTime, _ intercept: @escaping Intercept) {
    self.name = name
    self.intercept = intercept
    self.time = time
  }

  convenience init(
    _ name: String,
    _ interceptor: any AsyncStreamInterceptor,
    _ method: MethodSpec<Input, Output>,
    _ time: DriverTime
  ) {
    self.init("\(name), stream async", time) {
      try await interceptor.interceptStream($0, method: method, next: StreamNext($1))
    }
  }

  convenience init(
    _ name: String,
    _ interceptor: any AsyncStreamByteInterceptor,
    _ method: MethodInfo,
    _ time: DriverTime
  )
  where Input == ByteBuffer, Output == ByteBuffer {
    self.init("\(name), stream async byte", time) {
      try await interceptor.interceptStreamBytes($0, method: method, next: StreamNext($1))
    }
  }

  func label(_ hook: String) -> String { "\(self.name) \(hook)" }

  // MARK: From the driver

  func request(_ head: HTTPRequest<Void>, _ visit: RequestVisit) {
    // A new call of the function, as when an interceptor outside asks for a retry.
    if self.state.withLock({ !$0.tasks.isEmpty }) { self.stop() }
    let messages = self.state.withLock { state in
      state.isAtHead = true
      state.request = visit
      return state.messages
    }
    let request = StreamRequest(
      head: head,
      messages: messages.sequence(
        willRead: { index in self.state.withLock { $0.messageVisits.willRead(index, verb: .drop) } },
        didRead: { index in self.state.withLock { $0.messageVisits.last = index } }
      )
    )
    self.start {
      do {
        let response = try await self.intercept(request) { try await self.next($0) }
        try await self.passOut(response)
      } catch {
        guard !Task.isCancelled else { return }
        self.passOut(ConnectError(error))
      }
    }
  }

  func requestMessage(_ message: Input, _ visit: MessageVisit) {
    let messages = self.state.withLock { state in
      state.messageVisits.append(visit)
      return state.messages
    }
    messages.append(message)
  }

  func finishRequest() {
    self.state.withLock { $0.messages }.finish()
  }

  func result(_ result: StreamResult<Output>, _ visit: ResultVisit) {
    let results = self.state.withLock { state in
      state.resultVisits.append(visit)
      return state.results
    }
    guard let results else { return visit.report(.notWaiting) }
    results.append(result)
    if case .complete = result { results.finish() }
  }

  func metrics(_ metrics: HTTPMetrics, _ visit: HookVisit<HTTPMetrics>) {
    visit.add(metrics)
  }

  /// No more values come.
  func end() {
    self.state.withLock { $0.hasEnded = true }
    self.stop()
  }

  private func start(_ body: @escaping @Sendable () async -> Void) {
    let task = Task(executorPreference: self.time.executor, operation: body)
    let isLate = self.state.withLock { state in
      state.tasks.append(task)
      return state.hasEnded
    }
    if isLate { task.cancel() }
  }

  private func stop() {
    let earlier = self.state.withLock { state in
      let earlier = state
      state = State()
      state.hasEnded = earlier.hasEnded
      return earlier
    }
    for task in earlier.tasks { task.cancel() }
    earlier.messages.finish(.failure(CancellationError()))
    earlier.results?.finish(.failure(CancellationError()))
  }

  // MARK: From the interceptor

  private func next(_ request: StreamRequest<Input>) async throws -> StreamResponse<Output> {
    try Task.checkCancellation()
    let results = PulledBuffer<StreamResult<Output>>()
    self.state.withLock { state in
      if state.isAtHead {
        state.request?.add(.proceed(.success(request.head)))
        state.isAtHead = false
      } else {
        let delay = self.time.executor.now - state.lastResultTime
        state.resultVisits.pass(.retry(request.head, after: delay))
      }
      state.results = results
      state.resultVisits = Visits()
    }
    self.start {
      do {
        for try await message in request.messages {
          self.state.withLock { $0.messageVisits.pass(.proceed(message)) }
        }
      } catch {
        // A transform has thrown, which ends the attempt.
        guard !Task.isCancelled else { return }
        self.state.withLock { $0.messageVisits.report(.letGoOfProceed) }
        results.append(.failed(ConnectError(error)))
        results.finish()
      }
    }
    return StreamResponse(
      results: results.sequence(
        willRead: { index in
          self.state.withLock { state in
            if state.results === results { state.resultVisits.willRead(index, verb: .drop) }
          }
        },
        didRead: { index in
          self.state.withLock { state in
            guard state.results === results else { return }
            state.resultVisits.last = index
            state.lastResultTime = self.time.executor.now
          }
        }
      )
    )
  }

  /// Takes what the interceptor returned: an answer if `next` was not called, else results that go on.
  private func passOut(_ response: StreamResponse<Output>) async throws {
    var answer = StreamAnswer<Output>(messages: [])
    for try await result in response.results {
      try Task.checkCancellation()
      let isAnswer = self.state.withLock { state in
        if !state.isAtHead { state.resultVisits.pass(.proceed(result)) }
        return state.isAtHead
      }
      guard isAnswer else { continue }
      switch result {
      case .headers(let headers): answer.headers = headers
      case .message(let message): answer.messages.append(message)
      case .complete(_, let error, let trailers):
        answer.error = error
        answer.trailers = trailers
      }
    }
    self.state.withLock { state in
      // A stream that ends without an end has ended well.
      state.resultVisits.end(.proceed(.complete(code: .ok, error: nil, trailers: Headers())))
      if state.isAtHead { state.request?.add(.answer(answer)) }
      state.finish()
    }
  }

  private func passOut(_ error: ConnectError) {
    self.state.withLock { state in
      if state.isAtHead {
        state.request?.add(.proceed(.failure(error)))
      } else {
        state.resultVisits.pass(.proceed(.failed(error)))
      }
      state.finish()
    }
  }
}

/// The visits of one kind of value, by index, and which of the values was read last.
private struct Visits<Verb: Sendable> {
  private var all: [Weak<HookVisit<Verb>>] = []
  /// What went on before there was a value in whose place it could be.
  private var early: [Verb] = []
  var last: Int?

  mutating func append(_ visit: HookVisit<Verb>) {
    self.all.append(Weak(visit))
    for verb in self.early { visit.add(verb) }
    self.early.removeAll()
  }

  /// The value at `index` is asked for: if nothing went on in the place of the one before, it was dropped.
  func willRead(_ index: Int, verb: Verb) {
    if index > 0 { self.end(at: index - 1, verb) }
  }

  /// Something goes on in the place of the value that was read last.
  mutating func pass(_ verb: Verb) {
    if let last = self.last ?? self.all.indices.first {
      if last < self.all.count { self.all[last].object?.add(verb) }
    } else {
      self.early.append(verb)
    }
  }

  /// Nothing more goes on.
  func end(_ verb: Verb) {
    if let last { self.end(at: last, verb) }
  }

  /// Nothing has become of the values in whose place nothing went on.
  func report(_ kind: HookMisuse.Kind) {
    for visit in self.all { visit.object?.report(kind) }
  }

  private func end(at index: Int, _ verb: Verb) {
    guard index < self.all.count, let visit = self.all[index].object, visit.isOpen else { return }
    visit.add(verb)
  }
}
