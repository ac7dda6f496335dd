/// Gives rules to each call of a method, by the routes of its service.
package protocol CallRouter: AnyObject, Sendable {
  /// The rules for a call. Called once for each call, on the endpoint's executor.
  ///
  /// - Parameter headers: Those that the caller sends.
  func rules(forHeaders headers: Headers) -> CallRules

  /// The rules of all calls, if they are the same: then no call asks.
  var constantRules: CallRules? { get }
}

extension CallRouter {
  package var constantRules: CallRules? { nil }
}

/// What holds for a call.
package enum CallRules: Sendable {
  /// The rules of its method; nil if there are none.
  case method(MethodRules?)
  /// The rules of its route, and where the route leads; nil if the rules leave calls as they are.
  case route(MethodRules?, CallDestination)
  /// The same, with a fault on purpose.
  case fault(CallFault)
  /// The call must not be made.
  case refused(ConnectError)
}
