internal import Connect
internal import NIOCore
internal import Synchronization

/// What a call does with a ``ResponseCache``: it looks up, waits for an identical call, goes to the network.
///
/// At the end of the call it leaves the flight, see ``end()``.
final class CacheReading: Sendable {
  /// An attempt that went to the network, or that waits for an identical one in flight.
  private struct Attempt {
    let headers: Headers
    let control: CacheControl
    /// The cached entry, for revalidation.
    let entry: CacheEntry?
    let mark: CacheMark
    /// The rules of the method about typed responses.
    let messageRules: BoundMessageRules?
    /// Nil if the call shares no flight.
    var member: SingleFlight.Member?

    var key: CacheKey { self.mark.key }
  }

  private struct State {
    var attempt: Attempt?
    /// Whether the call is over. A storage may answer later.
    var hasEnded = false
    /// The value last added to a request as `if-none-match`.
    var addedETag: String?
    /// The key of the call's response, which is removed from the cache if it does not decode.
    var given: (key: CacheKey, headers: Headers)?
    /// The key of a response that the call was given before it made another attempt: it was not content with that one.
    var rejected: CacheKey?
  }

  let cache: ResponseCache
  private let state = Mutex(State())

  init(_ cache: ResponseCache) {
    self.cache = cache
  }

  /// The call is over.
  func end() {
    self.state.withLock { $0.hasEnded = true }
    self.leaveFlight()
  }

  // MARK: Requests

  func receive(_ request: HTTPRequest<ByteBuffer>, _ proceed: UnaryFunction.RequestProceed) {
    var request = request
    self.state.withLock { state in
      if let given = state.given.take() { state.rejected = given.key }
    }
    // An interceptor inside may have sent the request again, with the header that was added here.
    if let etag = self.state.withLock({ $0.addedETag.take() }), request.headers["if-none-match"] == [etag] {
      request.headers.remove(name: "if-none-match")
    }
    let control = CacheControl(request.headers)
    let policy = request.context[CachePolicy.self] ?? self.cache.configuration.policy
    // A caller that sends `if-none-match` itself wants to see the answer.
    guard policy != .networkOnly, !control.noStore, !request.headers.contains("if-none-match"),
      self.cache.mayServe(request)
    else {
      self.leaveFlight()
      return proceed(policy == .cacheOnly ? .failure(.notInCache(path: request.url.path)) : .success(request))
    }
    let key = self.cache.key(for: request)
    // A leader that makes another attempt stays the leader.
    self.leaveFlight(unlessLeading: key)
    self.cache.entry(for: key, headers: request.headers) { [request] entry in
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
    let rules = self.cache.messageRules(for: request)
    let mayAnswer = policy == .cacheOnly || self.state.withLock { $0.rejected } != key
    if policy != .networkFirst, mayAnswer, let entry, self.cache.isFresh(entry, control, rules) {
      self.leaveFlight()
      self.state.withLock { $0.given = (key, request.headers) }
      return proceed.answer(self.cache.response(of: entry, .hit))
    }
    guard policy != .cacheOnly else {
      self.leaveFlight()
      return proceed(.failure(.notInCache(path: request.url.path)))
    }
    let mark = CacheMark(self.cache, key)
    let headers = request.headers
    let attempt = Attempt(headers: headers, control: control, entry: entry, mark: mark, messageRules: rules)
    self.fetch(request, attempt, proceed)
  }

  /// Goes to the network, or waits for a call that does.
  private func fetch(
    _ request: HTTPRequest<ByteBuffer>,
    _ attempt: Attempt,
    _ proceed: UnaryFunction.RequestProceed
  ) {
    var attempt = attempt
    var outgoing = request
    // HTTP has no conditional POST.
    if request.isGET, let etag = attempt.entry?.etag {
      outgoing.headers["if-none-match"] = [etag]
      self.state.withLock { $0.addedETag = etag }
    }
    // A response in flight may be older than what the caller has just written.
    guard !attempt.control.noCache else {
      self.leaveFlight()
      self.state.withLock { $0.attempt = attempt }
      return proceed(.success(outgoing))
    }
    if let member = self.state.withLock({ $0.attempt?.member }) {
      attempt.member = member
      self.state.withLock { $0.attempt = attempt }
      return proceed(.success(outgoing))
    }
    let flight = SingleFlight.Key(cacheKey: attempt.key, removalCount: attempt.mark.removalCount)
    let member = SingleFlight.Member(key: flight, id: SingleFlight.makeID())
    attempt.member = member
    self.state.withLock { $0.attempt = attempt }
    let maxAge = attempt.control.maxAge
    let joined = self.cache.singleFlight.join(member, at: attempt.mark.time, maxAge: maxAge) {
      [weak self, outgoing] result in
      switch result {
      case .lead:
        proceed(.success(outgoing))
      case .response(let response, let headers)
      where self?.fits(response, to: headers, in: member) == true:
        self?.take(response, proceed)
      case .response, .proceedAlone:
        self?.proceedAlone(member)
        proceed(.success(outgoing))
      }
    }
    // The call may have ended before it joined the flight.
    guard !self.state.withLock({ $0.hasEnded }) else { return self.cache.singleFlight.leave(member) }
    switch joined {
    case .lead:
      proceed(.success(outgoing))
    case .wait:
      break
    case .proceedAlone:
      self.proceedAlone(member)
      proceed(.success(outgoing))
    }
  }

  // MARK: Responses

  func receive(_ response: HTTPResponse, _ proceed: UnaryFunction.ResponseProceed) {
    let attempt = self.state.withLock { state in
      let attempt = state.attempt.take()
      if let attempt, response.error == nil { state.given = (attempt.key, attempt.headers) }
      return attempt
    }
    guard let attempt else { return proceed(response) }
    var response = response
    if response.httpStatus == 304, response.error == nil, let entry = attempt.entry {
      let request = response.request
      response = self.cache.renewed(entry, by: response)
      response.request = request
      CacheStatus.revalidated.mark(&response.headers)
    }
    if let member = attempt.member {
      // A storage that has answered an earlier attempt late may have left the flight of another user.
      let isOfFlight = member.key.cacheKey == attempt.key
      self.cache.singleFlight.finish(member, isOfFlight ? self.outcome(response, of: attempt) : .handOver)
    }
    proceed(self.orFallback(response, of: attempt))
  }

  private func outcome(_ response: HTTPResponse, of attempt: Attempt) -> SingleFlight.Outcome {
    guard self.cache.isMade(response, for: attempt.key) else { return .doNotShare }
    if let error = response.error {
      // What is an error here may be a message to a parser, and only to calls with this parser.
      guard !response.isParsed else { return .doNotShare }
      // Deadline, cancellation and other errors that no server has sent concern this call alone, unless the server could
      // not be reached.
      let isOfAll = error.code == .unavailable || error.code == .resourceExhausted || error.httpStatus != nil
      guard isOfAll, error.code != .canceled, error.code != .deadlineExceeded else { return .handOver }
      // Errors about the caller may be shared only if the key contains the token.
      let isAboutCaller = error.code == .unauthenticated || error.code == .permissionDenied
      guard
        !isAboutCaller || attempt.key.headers.contains(where: { UserHeaders.partitioned.contains($0.name) }),
        self.rules(response).mayShare(isPersonal: attempt.key.isPersonal)
      else { return .doNotShare }
    } else {
      let rules = self.rules(response)
      guard rules.mayShare(isPersonal: attempt.key.isPersonal),
        attempt.messageRules?.mayShare(response, age: rules.age) ?? true
      else { return .doNotShare }
    }
    // Each waiting call has its own request.
    var response = response
    response.request = nil
    return .share(response, requestHeaders: attempt.headers)
  }

  private func rules(_ response: HTTPResponse) -> CacheRules {
    CacheRules(response, configuration: self.cache.configuration, requestTime: self.cache.now)
  }

  /// The response, or the cached response if the network has failed.
  private func orFallback(_ response: HTTPResponse, of attempt: Attempt) -> HTTPResponse {
    guard let code = response.error?.code, self.cache.configuration.networkErrors.contains(code),
      !attempt.control.noCache, let entry = attempt.entry, let allowance = entry.staleAllowance
    else { return response }
    // The request's `max-age` may let an entry expire earlier.
    let expiry = attempt.control.maxAge.map { min(entry.expiry, entry.birth + $0) } ?? entry.expiry
    var overdue = self.cache.now - expiry
    // What the method's rules call stale counts as expired by now.
    if overdue < .zero, self.cache.isStale(entry, by: attempt.messageRules) { overdue = .zero }
    guard overdue < .zero || overdue < allowance else { return response }
    self.state.withLock { $0.given = (attempt.key, attempt.headers) }
    return self.cache.response(of: entry, .stale)
  }

  // MARK: Single-flight

  /// Whether the response to another request fits this request, too.
  private func fits(_ response: HTTPResponse, to headers: Headers, in member: SingleFlight.Member) -> Bool {
    let names = self.rules(response).varyingNames
    return self.state.withLock { state in
      guard let attempt = state.attempt, attempt.member == member else { return false }
      return attempt.headers.fields(named: names) == headers.fields(named: names)
    }
  }

  private func take(_ response: HTTPResponse, _ proceed: UnaryFunction.RequestProceed) {
    guard let attempt = self.state.withLock({ $0.attempt.take() }) else { return }
    var response = response
    if response.error == nil { CacheStatus.collapsed.mark(&response.headers) }
    proceed.answer(self.orFallback(response, of: attempt))
  }

  private func proceedAlone(_ member: SingleFlight.Member) {
    self.state.withLock { state in
      guard state.attempt?.member == member else { return }
      state.attempt?.member = nil
    }
  }

  /// Abandons an earlier attempt.
  ///
  /// - Parameter key: The key of the next attempt. If the call leads the flight of this key, it stays the leader.
  private func leaveFlight(unlessLeading key: CacheKey? = nil) {
    if let member = self.state.withLock({ $0.attempt?.member }), member.key.cacheKey == key,
      self.cache.singleFlight.isLeader(member)
    {
      return
    }
    let attempt = self.state.withLock { $0.attempt.take() }
    if let member = attempt?.member { self.cache.singleFlight.leave(member) }
  }

  // MARK: Messages

  /// The call ends with an error though it had a response. The response is removed from the cache.
  func forgetGiven() {
    if let given = self.state.withLock({ $0.given.take() }) {
      self.cache.remove(given.key, headers: given.headers)
    }
  }
}
