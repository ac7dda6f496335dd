/// A hook's action, whatever the types of the messages.
@usableFromInline
package enum HookAction: Sendable {
  /// Passes a part of the request on.
  case send(RequestPart)
  /// Passes a part of the response on.
  case receive(ResultPart)
  /// Fails the call, from a request hook.
  case fail(ConnectError)
  /// Answers in place of the inner hooks and the network.
  case answer([ResultPart])
  /// Starts a new attempt at the first hook of the level; nil for the level's first request.
  indirect case retry(RequestPart?, after: Duration)
  /// Starts a new attempt at the first hook of the call; nil for the caller's request.
  indirect case restart(RequestPart?, after: Duration)
  /// Passes nothing on.
  case drop
  /// Passes the metrics of an attempt on.
  case metrics(HTTPMetrics)
}

/// A verb of a call's hook, which can be turned into an action.
protocol HookVerb {
  var action: HookAction { get }
}

extension HTTPMetrics: HookVerb {
  var action: HookAction { .metrics(self) }
}
