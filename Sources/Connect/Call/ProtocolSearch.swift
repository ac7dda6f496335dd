internal import Logging

/// Finds the protocol that gets through, for one call of a client that may choose. Confined to the call's executor.
///
/// A request goes out again only if the server certainly did not process it.
final class ProtocolSearch {
  private let choices: ProtocolChoices
  /// What the next attempt is made with.
  var plan: CallPlan
  /// The protocols that do not get through, as far as the call has tried them, and why.
  private var failures: [(environment: CallEnvironment, error: ConnectError)] = []

  init(_ choices: ProtocolChoices, _ plan: CallPlan) {
    self.choices = choices
    self.plan = plan
  }

  /// A request as it goes out in the protocol that is remembered for its origin, unless that has failed before in this call.
  func routed(_ request: RequestHead) -> RequestHead {
    let info = self.plan.info
    // If an interceptor has set another content type, the request stays in the protocol that the interceptor saw.
    guard self.choices.environments.contains(where: { $0.contentType(of: info) == request.contentType })
    else {
      return request
    }
    let remembered = self.choices.environment(for: request.url.origin)
    if !self.hasFailed(remembered) { self.plan = self.plan.over(remembered) }
    return self.translated(request)
  }

  // MARK: What attempts find out

  /// An attempt has failed because its protocol does not get through. The server did not process the request.
  ///
  /// - Returns: Whether a new attempt, in another protocol, replaces this one.
  func goesOn(
    after error: ConnectError,
    from attempt: Attempt,
    _ attempts: Attempts,
    _ call: Call
  )
    -> Bool
  {
    guard self.isUntouched(attempt) else { return false }
    let environment = attempt.plan.environment
    if !self.hasFailed(environment) { self.failures.append((environment, error)) }
    guard let next = self.choices.next(after: environment, except: self.failures.map(\.environment)) else {
      return false
    }
    guard let sent = attempt.sent else {
      self.avoid(attempt)
      return false
    }
    self.plan = attempt.plan.over(next)
    attempt.cancel(replacedAfter: error)
    // An observer of attempts may have ended the call.
    guard !call.isOver else { return true }
    attempts.start(self.translated(attempt.request), .given(sent), call, replacing: attempt)
    call.pump()
    return true
  }

  /// A response has begun that does not reject its protocol.
  func didReceive(_ head: HTTPResponseHead, to attempt: Attempt) {
    guard !self.failures.isEmpty, self.isUntouched(attempt) else { return }
    let environment = attempt.plan.environment
    guard head.answers(attempt.request.contentType, over: environment.wire) else { return }
    if self.choices.remember(environment, for: attempt.request.url.origin) {
      self.log("over \(environment.wire.name)", attempt)
    }
  }

  /// The error of an attempt that has ended, with the protocols that the call tried before.
  ///
  /// - Parameter found: The error before it named the request.
  func explain(_ error: ConnectError, _ found: ConnectError.Unnamed?, of attempt: Attempt) -> ConnectError {
    guard let found else { return error }
    if case .trailers = found, self.isUntouched(attempt) { self.avoid(attempt) }
    let environment = attempt.plan.environment
    let others = self.failures.filter { $0.environment !== environment }.map { failure in
      "\(failure.environment.wire.name): \(failure.error.message ?? "\(failure.error.code)")"
    }
    guard !others.isEmpty else { return error }
    var error = error
    error.message =
      "\(environment.wire.name): \(error.message ?? "\(error.code)"); tried before: \(others.joined(separator: "; "))"
    return error
  }

  /// Lets later calls use the next protocol.
  private func avoid(_ attempt: Attempt) {
    if self.choices.avoid(attempt.plan.environment, for: attempt.request.url.origin) {
      self.log("no longer over \(attempt.plan.environment.wire.name)", attempt)
    }
  }

  /// Whether the content type is the protocol's. If an interceptor chose another content type, the server may refuse
  /// that type, and not the protocol.
  private func isUntouched(_ attempt: Attempt) -> Bool {
    attempt.request.contentType == attempt.plan.environment.contentType(of: self.plan.info)
  }

  private func hasFailed(_ environment: CallEnvironment) -> Bool {
    self.failures.contains { $0.environment === environment }
  }

  private func log(_ what: String, _ attempt: Attempt) {
    self.plan.logger.info("calls to \(attempt.request.url.origin) go \(what) from now on")
  }

  /// The request with the content type of the protocol that the next attempt is made with.
  private func translated(_ request: RequestHead) -> RequestHead {
    let contentType = self.plan.environment.contentType(of: self.plan.info)
    return request.contentType == contentType ? request : request.with(contentType: contentType)
  }
}
