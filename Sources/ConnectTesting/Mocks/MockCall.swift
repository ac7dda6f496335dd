public import Connect

/// A call to a mock, with its progress. All properties may be read at any time, from any thread.
public final class MockCall<Input: Sendable>: Sendable {
  private struct State {
    var requests: [Input] = []
    var headers = Headers()
    var attempts = 0
    var code: Code?
    var error: ConnectError?
  }

  /// The method that was called.
  public let method: MethodInfo
  /// The options that the caller gave.
  public let options: CallOptions
  private let state = Observed(State())

  init(method: MethodInfo, options: CallOptions) {
    self.method = method
    self.options = options
  }

  /// The request's messages that have arrived; after a retry, those of the last attempt.
  public var requests: [Input] { self.state.value.requests }

  /// The request's first message, which of a unary method or a server stream is the only one; nil as long as none
  /// has arrived.
  public var request: Input? { self.state.value.requests.first }

  /// The request's headers as they went over the wire, those of interceptors and of the protocol included; empty
  /// as long as the call has not passed the interceptors. After a retry, those of the last attempt.
  public var headers: Headers { self.state.value.headers }

  /// How many times the request has reached the mock: 0 for a call that an interceptor has failed or answered,
  /// more than 1 for one that was retried.
  public var attempts: Int { self.state.value.attempts }

  /// How the call ended for the caller, interceptors included: `Code.ok`, `Code.canceled` if the caller
  /// cancelled it, or an error; nil as long as it is in flight.
  public var code: Code? { self.state.value.code }

  /// The error that the call ended with; nil for none, and as long as the call is in flight.
  public var error: ConnectError? { self.state.value.error }

  /// Waits for the end of the call.
  ///
  /// - Parameter limit: How long to wait at most, in real time.
  /// - Returns: As ``code``.
  /// - Throws: ``ExpectationFailure`` if that takes too long.
  @discardableResult
  public func end(within limit: Duration = .seconds(5)) async throws -> Code {
    if let code = await self.state.wait(within: limit, until: { $0.code }) { return code }
    throw ExpectationFailure("\(self.method.path) did not end within \(limit.clamped)")
  }

  /// Waits until the request has `count` messages.
  ///
  /// - Parameters:
  ///   - count: How many messages to wait for. More may have arrived.
  ///   - limit: How long to wait at most, in real time.
  /// - Throws: ``ExpectationFailure`` if that takes too long, or the call has ended without them.
  @discardableResult
  public func requests(_ count: Int, within limit: Duration = .seconds(5)) async throws -> [Input] {
    let requests = await self.state.wait(within: limit) { state in
      state.requests.count >= count || state.code != nil ? state.requests : nil
    }
    if let requests, requests.count >= count { return requests }
    let end = requests == nil ? "within \(limit.clamped)" : "and ended"
    throw ExpectationFailure(
      "\(self.method.path) sent \(self.requests.count) messages \(end), expected were \(count)"
    )
  }

  // MARK: Recording

  func attemptDidStart(headers: Headers) {
    self.state.update { state in
      state.attempts += 1
      state.headers = headers
      state.requests = []
    }
  }

  func didReceive(_ message: Input) {
    self.state.update { $0.requests.append(message) }
  }

  /// Notes the end; only the first counts.
  func didEnd(_ outcome: CallOutcome) {
    self.state.update { state in
      guard state.code == nil else { return }
      state.code = outcome.code
      state.error = outcome.error
    }
  }

  /// Waits until there is something to see: the only request, the start of a stream of requests, or the end.
  func begin(within limit: Duration) async -> Bool {
    let hasOneRequest = self.method.streamType == .unary || self.method.streamType == .serverStream
    let hasBegun = await self.state.wait(within: limit) { state in
      state.code != nil || (hasOneRequest ? !state.requests.isEmpty : state.attempts > 0) ? true : nil
    }
    return hasBegun ?? false
  }
}
