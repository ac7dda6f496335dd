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
