internal import Connect
internal import NIOCore
internal import Synchronization

/// One call's way through a ``ResponseCache``: looks up, waits for an identical call, goes to the network.
///
/// Its end, whatever way the call ends, takes the call out of its flight; so nothing that may outlive the call holds on
/// to it.
final class CacheReading: Sendable {
  /// An attempt that was let through to the network, or waits for one that was.
  private struct Attempt {
    let key: CacheKey
    let headers: Headers
    /// What there is in the cache, to ask the server about.
    let entry: CacheEntry?
    /// Whether it may be given if the network fails.
    let mayFallBack: Bool
    let mark: CacheMark
    /// Nil if the call flies alone.
    var flight: UInt64?
  }

  private struct State {
    var attempt: Attempt?
    /// The key of the response that the call was given, to be forgotten if it does not decode.
    var given: (key: CacheKey, headers: Headers)?
  }

  private let cache: ResponseCache
  private let state = Mutex(State())

  init(_ cache: ResponseCache) {
    self.cache = cache
  }

  deinit {
    self.leaveFlight()
  }

  // MARK: Requests

  func receive(_ request: HTTPRequest<ByteBuffer>, _ proceed: UnaryFunction.RequestProceed) {
    // An earlier attempt's.
    self.leaveFlight()
    let control = CacheControl(request.headers)
    let policy = request.context[CachePolicy.self] ?? self.cache.configuration.policy
    // A caller that asks the server about a version of its own wants to see the answer.
    guard policy != .networkOnly, !control.noStore, !request.headers.contains("if-none-match") else {
      return proceed(.success(request))
    }
    let key = self.cache.key(for: request)
    self.cache.entry(for: key, headers: request.headers) { entry in
      self.decide(request, key, policy, control, entry, proceed)
    }
  }

  private func decide(
    _ request: HTTPRequest<ByteBuffer>,
    _ key: CacheKey,
    _ policy: CachePolicy,
    _ control: CacheControl,
    _ entry: CacheEntry?,
    _ proceed: UnaryFunction.RequestProceed
  ) {
    if policy != .networkFirst, !control.noCache, let entry, self.isFresh(entry, maxAge: control.maxAge) {
      self.state.withLock { $0.given = (key, request.headers) }
      return proceed.answer(self.cache.response(of: entry, .hit))
    }
    guard policy != .cacheOnly else {
      return proceed(
        .failure(
          ConnectError(
            code: .failedPrecondition,
            message:
              "the cache has no fresh response to \(request.url.path), and the network is not to be used"
          )
        )
      )
    }
    self.fly(request, key, entry, mayFallBack: !control.noCache, proceed)
  }

  private func isFresh(_ entry: CacheEntry, maxAge: Duration?) -> Bool {
    let now = self.cache.now
    guard now < entry.expiry else { return false }
    return maxAge.map { now - entry.birth <= $0 } ?? true
  }

  /// Goes to the network, or waits for a call that does.
  private func fly(
    _ request: HTTPRequest<ByteBuffer>,
    _ key: CacheKey,
    _ entry: CacheEntry?,
    mayFallBack: Bool,
    _ proceed: UnaryFunction.RequestProceed
  ) {
    let mark = CacheMark(key)
    var outgoing = request
    outgoing.context[CacheMark.self] = mark
    // Over POST, HTTP knows no such question.
    if let etag = entry?.etag, request.isGET { outgoing.headers["if-none-match"] = [etag] }
    let id = self.cache.flights.makeID()
    let attempt = Attempt(
      key: key,
      headers: request.headers,
      entry: entry,
      mayFallBack: mayFallBack,
      mark: mark,
      flight: id
    )
    self.state.withLock { $0.attempt = attempt }
    let leads = self.cache.flights.join(key, id) { [weak self, outgoing] turn in
      switch turn {
      case .lead:
        proceed(.success(outgoing))
      case .take(let response, let headers) where self?.mayTake(response, madeFor: headers, as: id) == true:
        self?.take(response, proceed)
      case .take, .fly:
        self?.flyAlone(id)
        proceed(.success(outgoing))
      }
    }
    if leads { proceed(.success(outgoing)) }
  }

  // MARK: Responses

  func receive(_ response: HTTPResponse, _ proceed: UnaryFunction.ResponseProceed) {
    let attempt = self.state.withLock { state in
      let attempt = state.attempt
      state.attempt = nil
      if let attempt, response.error == nil { state.given = (attempt.key, attempt.headers) }
      return attempt
    }
    guard let attempt else { return proceed(response) }
    var response = response
    if response.httpStatus == 304, response.error == nil, let entry = attempt.entry {
      response = self.cache.renewed(entry, by: response)
      CacheStatus.revalidated.mark(&response.headers)
    }
    if let id = attempt.flight {
      self.cache.flights.land(attempt.key, id, self.landing(response, of: attempt))
    }
    proceed(self.orFallback(response, of: attempt))
  }

  private func landing(_ response: HTTPResponse, of attempt: Attempt) -> Flights.Landing {
    guard attempt.mark.mayShare else { return .disperse }
    if let error = response.error {
      // The deadline and cancellation are this call's own, and so are other errors that no server has sent, unless the
      // server could not be reached.
      let isOfAll = error.code == .unavailable || error.code == .resourceExhausted || error.httpStatus != nil
      guard isOfAll, error.code != .canceled, error.code != .deadlineExceeded else { return .handOver }
    } else if !self.rules(response).mayShare {
      return .disperse
    }
    return .share(response, requestHeaders: attempt.headers)
  }

  private func rules(_ response: HTTPResponse) -> CacheRules {
    CacheRules(response, configuration: self.cache.configuration, now: self.cache.now)
  }

  /// The response, or what the cache has in its place if the network has failed.
  private func orFallback(_ response: HTTPResponse, of attempt: Attempt) -> HTTPResponse {
    guard let code = response.error?.code, self.cache.configuration.networkErrors.contains(code),
      attempt.mayFallBack, let entry = attempt.entry, let allowance = entry.staleAllowance
    else { return response }
    let overdue = self.cache.now - entry.expiry
    guard overdue < .zero || overdue < allowance else { return response }
    self.state.withLock { $0.given = (attempt.key, attempt.headers) }
    return self.cache.response(of: entry, .stale)
  }

  // MARK: Flights

  /// Whether a response to another request is one to this, too.
  private func mayTake(_ response: HTTPResponse, madeFor headers: Headers, as id: UInt64) -> Bool {
    let names = self.rules(response).varyingNames
    return self.state.withLock { state in
      guard let attempt = state.attempt, attempt.flight == id else { return false }
      return attempt.headers.fields(named: names) == headers.fields(named: names)
    }
  }

  private func take(_ response: HTTPResponse, _ proceed: UnaryFunction.RequestProceed) {
    let attempt = self.state.withLock { state in
      defer { state.attempt = nil }
      return state.attempt
    }
    guard let attempt else { return }
    var response = response
    if response.error == nil { CacheStatus.collapsed.mark(&response.headers) }
    proceed.answer(self.orFallback(response, of: attempt))
  }

  private func flyAlone(_ id: UInt64) {
    self.state.withLock { state in
      guard state.attempt?.flight == id else { return }
      state.attempt?.flight = nil
    }
  }

  private func leaveFlight() {
    let attempt = self.state.withLock { state in
      defer { state.attempt = nil }
      return state.attempt
    }
    if let attempt, let id = attempt.flight { self.cache.flights.leave(attempt.key, id) }
  }

  // MARK: Messages

  /// The call ends with an error though it had a response: that is not worth keeping.
  func forgetGiven() {
    let given = self.state.withLock { state in
      defer { state.given = nil }
      return state.given
    }
    if let given { self.cache.remove(given.key, headers: given.headers) }
  }
}
