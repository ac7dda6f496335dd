public import NIOCore

/// A hook calls this once to say how the call goes on. It may be called later and from any thread.
///
/// It is called like a function with the value to pass on; the other verbs are methods, depending on the hook. A
/// second call, or a call after the end, does nothing. When the last copy is released uncalled, the call fails with
/// `internal`, and the message names the interceptor. Tests make one from a closure:
///
/// ```swift
/// func record(_ request: HTTPRequest<ByteBuffer>, of hooks: UnaryFunction) {
///   hooks.requestFunction?(request, Proceed { verb in recorded.append(verb) })
/// }
/// ```
public struct Proceed<Verb: Sendable>: Sendable {
  /// Receives the hook's action; nil if this was made from a closure.
  @usableFromInline let visit: Visit?
  private let closure: ProceedClosure<Verb>?
  /// Whether the call has already ended, by its deadline or its cancellation. The hook's action is then ignored.
  public let isOver: Bool

  private init(_ closure: ProceedClosure<Verb>, isOver: Bool) {
    self.visit = nil
    self.closure = closure
    self.isOver = isOver
  }

  /// For a hook of a call.
  @inline(__always)
  init(_ visit: Visit) {
    self.visit = visit
    self.closure = nil
    self.isOver = visit.isOver
  }

  /// A `proceed` made from a closure, which gets what the hook says; for tests of hooks.
  public init(isOver: Bool = false, _ body: @escaping @Sendable (Verb) -> Void) {
    self.init(ProceedClosure(body), isOver: isOver)
  }

  /// For hooks around other hooks: the `proceed` for the inner hook.
  public init<Outer>(around proceed: Proceed<Outer>, _ body: @escaping @Sendable (Verb) -> Void) {
    self.init(
      ProceedClosure(wrapping: proceed.hookVisit, on: proceed.taskExecutor, body),
      isOver: proceed.isOver
    )
  }

  /// - Parameter executor: Where ``task(_:)`` runs.
  package init(on executor: any TaskExecutor, _ body: @escaping @Sendable (Verb) -> Void) {
    self.init(ProceedClosure(on: executor, body), isOver: false)
  }

  /// The visit of this `proceed`, or of the outer `proceed` around which it was made.
  private var hookVisit: Visit? { self.visit ?? self.closure?.wrapped }

  var taskExecutor: (any TaskExecutor)? {
    self.hookVisit?.taskExecutor ?? self.closure?.executor
  }

  /// The error of the attempt that a hook abandoned last, for a retry. To be read while the hook is called.
  package var retryCause: ConnectError? { self.hookVisit?.retryCause }

  /// The executor on which the tasks of an interceptor have to run; nil if any executor will do.
  package var requiredTaskExecutor: (any TaskExecutor)? { self.taskExecutor?.unlessOfCalls }

  /// Goes on as `verb` says. Hooks around other hooks use it to pass on the verb of the inner hook.
  public func send(_ verb: consuming Verb) {
    if let visit = self.visit {
      if let verb = verb as? any HookVerb { visit.take(verb.action) }
    } else {
      self.closure?.body(verb)
    }
  }

  // Not inlined, so that hooks of calls do not look up the verb's type.
  @usableFromInline
  @inline(never)
  func sendToClosure(_ verb: () -> Verb) { self.send(verb()) }
}

/// Passes a hook's verb to a closure.
private final class ProceedClosure<Verb: Sendable>: Sendable {
  let body: @Sendable (Verb) -> Void
  let wrapped: Visit?
  let executor: (any TaskExecutor)?

  init(
    wrapping visit: Visit? = nil,
    on executor: (any TaskExecutor)? = nil,
    _ body: @escaping @Sendable (Verb) -> Void
  ) {
    self.body = body
    self.wrapped = visit
    self.executor = executor
  }
}

extension Proceed {
  /// Runs `body` in a task on the call's executor, where hooks run one at a time. So the hook of an interceptor that is not
  /// `Sendable` may use its own state there, and wait for something:
  ///
  /// ```swift
  /// UnaryFunction(requestFunction: { request, proceed in
  ///   proceed.task {
  ///     let token = await fetchToken()
  ///     self.token = token
  ///     var request = request
  ///     request.headers["authorization"] = ["Bearer \(token)"]
  ///     proceed(.success(request))
  ///   }
  /// })
  /// ```
  ///
  /// To be called in the hook, or in such a task. Neither `body` nor the functions it awaits may block; both run on the
  /// call's executor, unless an awaited actor has its own executor. Other hooks of the call may run meanwhile. A `body`
  /// that ends without having proceeded releases `proceed`: the call fails with `internal`. When the call ends the task
  /// goes on.
  ///
  /// - Returns: The task, to cancel it with.
  @discardableResult
  public func task(_ body: @escaping () async -> Void) -> Task<Void, Never> {
    assert(
      self.hookVisit?.isOnExecutor ?? true,
      "proceed.task was called outside of the call's executor"
    )
    let body = Confined(body)
    return Task(executorPreference: self.taskExecutor) { await body.value() }
  }
}

/// What a request hook can do.
public enum RequestVerb<Request: Sendable, Response: Sendable>: Sendable {
  /// Pass a request on, or fail the call.
  case proceed(Result<Request, ConnectError>)
  /// Answer the call without the network.
  case answer(Response)
}

extension RequestVerb: HookVerb {
  var action: HookAction {
    switch self {
    case .proceed(.success(let request)): (request as? any PartConvertible).map { .send($0.part) } ?? .drop
    case .proceed(.failure(let error)): .fail(error)
    case .answer(let response): .answer((response as? any ResultConvertible)?.results ?? [])
    }
  }
}

extension Proceed {
  /// Passes the request inwards, or fails the call. After a failure no inner hook is called, and the error goes up
  /// through the outer hooks.
  public func callAsFunction<Request, Response>(
    _ result: Result<Request, ConnectError>
  ) where Verb == RequestVerb<Request, Response> {
    self.send(.proceed(result))
  }

  /// The same, at less cost, for an ``HTTPRequest`` that the compiler knows.
  @inlinable
  @inline(__always)
  public func callAsFunction<Message, Response>(
    _ result: Result<HTTPRequest<Message>, ConnectError>
  ) where Verb == RequestVerb<HTTPRequest<Message>, Response> {
    guard let visit = self.visit else {
      self.send(.proceed(result))
      return
    }
    switch result {
    case .success(let request): visit.send(request.part)
    case .failure(let error): visit.take(.fail(error))
    }
  }

  /// Answers the call. No inner hook is called, and the response goes up through the outer hooks.
  public func answer<Request, Response>(
    _ response: Response
  ) where Verb == RequestVerb<Request, Response> {
    self.send(.answer(response))
  }
}

/// What a response hook of a unary call can do.
public enum ResponseVerb<Request: Sendable, Response: Sendable>: Sendable {
  /// Pass a response on: the one given, or another.
  case proceed(Response)
  /// Start a new attempt at the first hook of this level, with a request or with that of the caller.
  case retry(Request?, after: Duration)
  /// Start a new attempt at the first hook of the call, with a request or with that of the caller.
  case restart(Request?, after: Duration)
}

extension ResponseVerb: HookVerb {
  var action: HookAction {
    switch self {
    case .proceed(let response):
      (response as? any ResultConvertible)?.results.first.map { .receive($0) } ?? .drop
    case .retry(let request, let delay):
      .retry((request as? any PartConvertible)?.part, after: delay)
    case .restart(let request, let delay):
      .restart((request as? any PartConvertible)?.part, after: delay)
    }
  }
}

extension Proceed {
  /// Passes a response outwards: the one given, or another in its place.
  public func callAsFunction<Request, Response>(
    _ response: Response
  ) where Verb == ResponseVerb<Request, Response> {
    self.send(.proceed(response))
  }

  /// The same, at less cost, for a response of messages that the compiler knows.
  @inlinable
  @inline(__always)
  public func callAsFunction<Request, Output>(
    _ response: ResponseMessage<Output>
  ) where Verb == ResponseVerb<Request, ResponseMessage<Output>> {
    if let visit = self.visit {
      visit.receive(.whole(response.erased))
    } else {
      self.send(.proceed(response))
    }
  }

  /// The same, at less cost, for a response of bytes that the compiler knows.
  @inlinable
  @inline(__always)
  public func callAsFunction<Request>(
    _ response: HTTPResponse
  ) where Verb == ResponseVerb<Request, HTTPResponse> {
    if let visit = self.visit {
      visit.receive(.wholeBytes(response))
    } else {
      self.send(.proceed(response))
    }
  }

  /// Starts a new attempt at the first hook of this level (message or byte hooks), or at the first hook of the call. Hooks
  /// outside do not see this response.
  ///
  /// Refused, so that this response passes on, when the cap on retries is reached or the delay would pass the
  /// call's deadline.
  ///
  /// - Parameters:
  ///   - request: The request to start with; nil for the level's first request or, from the start, for the caller's. From the
  ///     start, only URL, headers and context of a byte hook's request count: the caller's message is encoded again.
  ///   - delay: How long to wait before.
  ///   - start: Where the attempt starts; at this level by default.
  public func retry<Request, Response>(
    _ request: Request? = nil,
    after delay: Duration = .zero,
    from start: RetryStart = .level
  ) where Verb == ResponseVerb<Request, Response> {
    self.send(start == .level ? .retry(request, after: delay) : .restart(request, after: delay))
  }
}

/// What a hook for a stream's request messages can do.
public enum StreamDataVerb<Message: Sendable>: Sendable {
  /// Pass a message on: the one given, or another.
  case proceed(Message)
  /// Pass nothing on.
  case drop
}

extension StreamDataVerb: HookVerb {
  var action: HookAction {
    switch self {
    case .proceed(let message): .send(.message(MessageBox(message)))
    case .drop: .drop
    }
  }
}

extension Proceed {
  /// Passes a message on: the one given, or another in its place.
  @inlinable
  @inline(__always)
  public func callAsFunction<Message>(_ message: Message) where Verb == StreamDataVerb<Message> {
    if let visit = self.visit {
      visit.send(.message(MessageBox(message)))
    } else {
      self.sendToClosure { .proceed(message) }
    }
  }

  /// The same, at less cost, for messages of bytes.
  @inlinable
  @inline(__always)
  public func callAsFunction(_ bytes: ByteBuffer) where Verb == StreamDataVerb<ByteBuffer> {
    if let visit = self.visit {
      visit.send(.bytes(bytes))
    } else {
      self.send(.proceed(bytes))
    }
  }

  /// Passes nothing on, and releases the values that wait behind this one.
  public func drop<Message>() where Verb == StreamDataVerb<Message> {
    self.send(.drop)
  }
}

/// What a hook for a stream's results can do.
public enum StreamResultVerb<Message: Sendable>: Sendable {
  /// Pass a result on: the one given, or another.
  case proceed(StreamResult<Message>)
  /// Start a new attempt at the first hook of this level, with a request or with that of the caller.
  case retry(HTTPRequest<Void>?, after: Duration)
  /// Start a new attempt at the first hook of the call, with a request or with that of the caller.
  case restart(HTTPRequest<Void>?, after: Duration)
  /// Pass nothing on.
  case drop
}

extension StreamResultVerb: HookVerb {
  var action: HookAction {
    switch self {
    case .proceed(let result): .receive(result.part)
    case .retry(let request, let delay): .retry(request?.part, after: delay)
    case .restart(let request, let delay): .restart(request?.part, after: delay)
    case .drop: .drop
    }
  }
}

extension Proceed {
  /// Passes a result on: the one given, or another in its place.
  ///
  /// A message in place of the end is followed by a successful end. An end in place of anything else ends the stream,
  /// and cancels everything inside.
  @inlinable
  @inline(__always)
  public func callAsFunction<Message>(
    _ result: StreamResult<Message>
  ) where Verb == StreamResultVerb<Message> {
    if let visit = self.visit {
      visit.receive(result.part)
    } else {
      self.sendToClosure { .proceed(result) }
    }
  }

  /// The same, at less cost, for messages of bytes.
  @inlinable
  @inline(__always)
  public func callAsFunction(_ result: StreamResult<ByteBuffer>) where Verb == StreamResultVerb<ByteBuffer> {
    guard let visit = self.visit, case .message(let bytes) = result else {
      self.send(.proceed(result))
      return
    }
    visit.receive(.bytes(bytes))
  }

  /// Starts a new attempt at the first hook of this level, or at the first hook of the call, with the request messages sent
  /// so far.
  ///
  /// Refused, so that this result passes on, when the cap on retries is reached or the delay would pass the deadline.
  /// Also refused when this hook has passed on a result of this attempt, or the sent messages exceed what is kept.
  ///
  /// - Parameters:
  ///   - request: The request to start with; nil for the level's first request or, from the start, for the caller's.
  ///   - delay: How long to wait before.
  ///   - start: Where the attempt starts; at this level by default.
  public func retry<Message>(
    _ request: HTTPRequest<Void>? = nil,
    after delay: Duration = .zero,
    from start: RetryStart = .level
  ) where Verb == StreamResultVerb<Message> {
    self.send(start == .level ? .retry(request, after: delay) : .restart(request, after: delay))
  }

  /// Passes nothing on, and releases what waits behind. Headers and the end cannot be dropped; they pass.
  public func drop<Message>() where Verb == StreamResultVerb<Message> {
    self.send(.drop)
  }
}

extension Proceed where Verb == HTTPMetrics {
  /// Passes metrics on.
  public func callAsFunction(_ metrics: HTTPMetrics) {
    if let visit = self.visit { visit.take(.metrics(metrics)) } else { self.send(metrics) }
  }
}
