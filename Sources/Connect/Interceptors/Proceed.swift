/// What a hook calls, once, to say how the call goes on. It may be called later and from any thread.
///
/// It is called like a function with the value to pass on; the other verbs are methods. Which there are
/// depends on the hook. A second call, or one after the call is over, does nothing. When the last copy is released uncalled,
/// nobody can go on any more: the call fails with `internal`, and the message names the interceptor.
///
/// Tests make one from a closure:
///
/// ```swift
/// hooks.requestFunction?(request, Proceed { verb in recorded.append(verb) })
/// ```
public struct Proceed<Verb: Sendable>: Sendable {
  private let owner: HookOwner
  private let visit: Int
  /// Nil if it was made from a closure. Kept alive, since the call has to live until somebody goes on with it.
  private let call: Call?
  /// Nil if it was made from a closure.
  private var ticket: ProceedTicket?
  /// Whether the hook is only told how the call has ended, by its deadline or its cancellation: whatever it says, nothing
  /// comes of it. So it need not ask anybody what to do.
  public let isOver: Bool

  private init(from owner: ClosureHookOwner<Verb>, isOver: Bool) {
    self.owner = owner
    self.visit = 0
    self.call = nil
    self.isOver = isOver
  }

  /// - Parameter isOver: What ``isOver`` says.
  public init(isOver: Bool = false, _ body: @escaping @Sendable (Verb) -> Void) {
    self.init(from: ClosureHookOwner(body), isOver: isOver)
  }

  /// For hooks around other hooks: what an inner hook is given in place of `proceed`.
  public init<Outer>(around proceed: Proceed<Outer>, _ body: @escaping @Sendable (Verb) -> Void) {
    self.init(
      from: ClosureHookOwner(wrapping: proceed.hookedCall, on: proceed.taskExecutor, body),
      isOver: proceed.isOver
    )
  }

  /// - Parameter executor: Where ``task(_:)`` runs.
  package init(on executor: any TaskExecutor, _ body: @escaping @Sendable (Verb) -> Void) {
    self.init(from: ClosureHookOwner(on: executor, body), isOver: false)
  }

  /// For a hook that is told of its call's end.
  static func over(on executor: any TaskExecutor) -> Self {
    Proceed(from: ClosureHookOwner(on: executor) { _ in }, isOver: true)
  }

  /// For a visit of a hook, by its number.
  init(_ owner: HookOwner, visit: Int, of call: Call, _ ticket: ProceedTicket) {
    self.owner = owner
    self.visit = visit
    self.call = call
    self.ticket = ticket
    self.isOver = false
  }

  /// For a visit whose value is kept from the start, so that the hook may proceed at any time.
  static func armed(_ owner: HookOwner, visit: Int, of call: Call) -> Self {
    let proceed = Proceed(owner, visit: visit, of: call, ProceedTicket())
    proceed.arm()
    return proceed
  }

  /// The hook has not proceeded yet: from now on, releasing the last copy uncalled ends the call.
  func arm() {
    if let call = self.call { self.ticket?.arm(self.owner, visit: self.visit, of: call) }
  }

  /// The ticket for another visit, if there is no other copy of this `proceed`. It must not be armed.
  @inline(__always)
  mutating func takeTicket() -> ProceedTicket? {
    guard isKnownUniquelyReferenced(&self.ticket), let ticket = self.ticket.take() else { return nil }
    ticket.renew()
    return ticket
  }

  private var hookedCall: Call? { self.call ?? self.owner.wrappedCall }

  private var taskExecutor: (any TaskExecutor)? {
    self.hookedCall?.client.taskExecutor ?? self.owner.taskExecutor
  }

  /// The error of the attempt which a hook has given up last, to make another. To be read while the hook is called.
  package var retryCause: ConnectError? { self.hookedCall?.retryCause }

  /// Goes on as `verb` says, for hooks around other hooks, which pass on what those proceeded with.
  public func send(_ verb: consuming Verb) {
    self.ticket?.use()
    if self.call?.isOnExecutor ?? true {
      self.owner.hook(self.visit, did: verb)
    } else {
      self.hop(verb)
    }
  }

  private func hop(_ verb: Verb) {
    let owner = self.owner
    let visit = self.visit
    self.call?.hop { owner.hook(visit, did: verb) }
  }
}

extension Proceed {
  /// Runs `body` in a task on the call's executor, where hooks run one at a time. So the hook of an interceptor that is not
  /// `Sendable` may use its own state there, and wait for something:
  ///
  /// ```swift
  /// requestFunction: { request, proceed in
  ///   proceed.task {
  ///     self.token = await fetchToken()
  ///     …
  ///     proceed(.success(request))
  ///   }
  /// }
  /// ```
  ///
  /// To be called in the hook, or in such a task. What runs there must not block, nor what it awaits, which runs there too
  /// unless it has an executor of its own. Other hooks of the call may run while it waits. A `body` that ends without having
  /// proceeded has let go of `proceed`: the call fails with `internal`. When the call ends the task goes on.
  ///
  /// - Returns: The task, to cancel it with.
  @discardableResult
  public func task(_ body: @escaping () async -> Void) -> Task<Void, Never> {
    assert(
      self.hookedCall?.isOnExecutor ?? true,
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

extension Proceed {
  /// Passes the request on to what is inside, or fails the call: then nothing inside is touched, and the error
  /// goes up through the hooks outside.
  @inlinable
  public func callAsFunction<Request, Response>(
    _ result: Result<Request, ConnectError>
  ) where Verb == RequestVerb<Request, Response> {
    self.send(.proceed(result))
  }

  /// Answers the call: nothing inside is touched, and the response goes up through the hooks outside.
  @inlinable
  public func answer<Request, Response>(
    _ response: Response
  ) where Verb == RequestVerb<Request, Response> {
    self.send(.answer(response))
  }
}

/// What a response hook of a unary call can do.
public enum ResponseVerb<Request: Sendable, Response: Sendable>: Sendable {
  case proceed(Response)
  /// Start a new attempt at the first hook of this level, with a request or with that of the caller.
  case retry(Request?, after: Duration)
}

extension Proceed {
  /// Passes a response on to what is outside: the one given, or another in its place.
  @inlinable
  public func callAsFunction<Request, Response>(
    _ response: Response
  ) where Verb == ResponseVerb<Request, Response> {
    self.send(.proceed(response))
  }

  /// Starts a new attempt at the first hook of this level (message or byte hooks); hooks outside do not see
  /// this response.
  ///
  /// Refused, so that this response passes on, when the cap on retries is reached or the delay would pass the
  /// call's deadline.
  ///
  /// - Parameters:
  ///   - request: What to start with; nil for what the level was first started with.
  ///   - delay: How long to wait before.
  @inlinable
  public func retry<Request, Response>(
    _ request: Request? = nil,
    after delay: Duration = .zero
  ) where Verb == ResponseVerb<Request, Response> {
    self.send(.retry(request, after: delay))
  }
}

/// What a hook for a stream's request messages can do.
public enum StreamDataVerb<Message: Sendable>: Sendable {
  case proceed(Message)
  /// Pass nothing on.
  case drop
}

extension Proceed {
  /// Passes a message on: the one given, or another in its place.
  @inlinable
  public func callAsFunction<Message>(_ message: Message) where Verb == StreamDataVerb<Message> {
    self.send(.proceed(message))
  }

  /// Passes nothing on, and releases what waits behind.
  @inlinable
  public func drop<Message>() where Verb == StreamDataVerb<Message> {
    self.send(.drop)
  }
}

/// What a hook for a stream's results can do.
public enum StreamResultVerb<Message: Sendable>: Sendable {
  case proceed(StreamResult<Message>)
  /// Start a new attempt at the first hook of this level, with a request or with that of the caller.
  case retry(HTTPRequest<Void>?, after: Duration)
  /// Pass nothing on.
  case drop
}

extension Proceed {
  /// Passes a result on: the one given, or another in its place.
  ///
  /// A message in place of the end is followed by a successful end; an end in place of anything else ends the
  /// stream, and what follows inside is cancelled.
  @inlinable
  public func callAsFunction<Message>(
    _ result: StreamResult<Message>
  ) where Verb == StreamResultVerb<Message> {
    self.send(.proceed(result))
  }

  /// Starts a new attempt at the first hook of this level, with the request messages sent so far.
  ///
  /// Refused, so that this result passes on, when the cap on retries is reached, the delay would pass the
  /// deadline, a result of this attempt has already gone out from this hook, or more request messages were
  /// sent than are kept.
  @inlinable
  public func retry<Message>(
    _ request: HTTPRequest<Void>? = nil,
    after delay: Duration = .zero
  ) where Verb == StreamResultVerb<Message> {
    self.send(.retry(request, after: delay))
  }

  /// Passes nothing on, and releases what waits behind. Headers and the end cannot be dropped; they pass.
  @inlinable
  public func drop<Message>() where Verb == StreamResultVerb<Message> {
    self.send(.drop)
  }
}

extension Proceed where Verb == HTTPMetrics {
  /// Passes metrics on.
  @inlinable
  public func callAsFunction(_ metrics: HTTPMetrics) {
    self.send(metrics)
  }
}
