// What `Proceed` says to the engine, whatever the types of the messages.

/// Receives what a hook does. Each visit of a hook has one, which all copies of its `proceed` share.
@usableFromInline
protocol HookTicket: AnyObject, Sendable {
  /// From any thread. Counts once, and only while the visit does.
  func take(_ action: consuming HookAction)

  /// Whether nothing comes of what the hook does, since the call is over.
  var isOver: Bool { get }
  /// Whether the caller is on the call's executor.
  var isOnExecutor: Bool { get }
  /// Where tasks of hooks run.
  var taskExecutor: any TaskExecutor { get }
  /// The error of the attempt that a hook has given up last.
  var retryCause: ConnectError? { get }
}

/// What a hook does, whatever the types of the messages.
@usableFromInline
package enum HookAction: Sendable {
  /// Passes a part of the request on.
  case send(RequestPart)
  /// Passes a part of the response on.
  case receive(ResultPart)
  /// Fails the call, from a request hook.
  case fail(ConnectError)
  /// Answers in place of what is inside.
  case answer([ResultPart])
  /// Starts a new attempt at the first hook of the level; nil for what the level was first started with.
  indirect case retry(RequestPart?, after: Duration)
  /// Passes nothing on.
  case drop
  /// Passes the metrics of an attempt on.
  indirect case metrics(HTTPMetrics)
}

/// A verb that a hook of a call can be given.
protocol HookVerb {
  var action: HookAction { get }
}

// MARK: - Verbs without the types of messages

extension RequestVerb: HookVerb {
  var action: HookAction {
    switch self {
    case .proceed(.success(let request)): (request as? any PartConvertible).map { .send($0.part) } ?? .drop
    case .proceed(.failure(let error)): .fail(error)
    case .answer(let response): .answer((response as? any ResultConvertible)?.results ?? [])
    }
  }
}

extension ResponseVerb: HookVerb {
  var action: HookAction {
    switch self {
    case .proceed(let response):
      (response as? any ResultConvertible)?.results.first.map { .receive($0) } ?? .drop
    case .retry(let request, let delay):
      .retry((request as? any PartConvertible)?.part, after: delay)
    }
  }
}

extension StreamDataVerb: HookVerb {
  var action: HookAction {
    switch self {
    case .proceed(let message): .send(.message(MessageBox(message)))
    case .drop: .drop
    }
  }
}

extension StreamResultVerb: HookVerb {
  var action: HookAction {
    switch self {
    case .proceed(let result): .receive(result.part)
    case .retry(let request, let delay): .retry(request?.part, after: delay)
    case .drop: .drop
    }
  }
}

extension HTTPMetrics: HookVerb {
  var action: HookAction { .metrics(self) }
}

/// A request, whatever the type of its message.
private protocol PartConvertible {
  var part: RequestPart { get }
}

/// A response, whatever the type of its messages.
private protocol ResultConvertible {
  var results: [ResultPart] { get }
}

extension HTTPRequest: PartConvertible {
  /// The whole request; that of a stream has an empty message.
  @inlinable
  @inline(__always)
  package var part: RequestPart { .whole(self.head, self.box) }
}

extension ResponseMessage: ResultConvertible {
  var results: [ResultPart] { [.whole(self.erased)] }
}

extension HTTPResponse: ResultConvertible {
  var results: [ResultPart] { [.wholeBytes(self)] }
}

extension StreamAnswer: ResultConvertible {
  /// The answer as a stream brings it.
  var results: [ResultPart] {
    [.headers(self.headers)] + self.messages.map { .message(MessageBox($0)) }
      + [.end(self.error, trailers: self.trailers)]
  }
}
