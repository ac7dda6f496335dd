internal import Connect
internal import ConnectInterceptors
internal import ConnectTesting
internal import Logging
internal import TestSupport

/// Who makes a call; nil for somebody who is not logged in.
enum CurrentUser: CallContextKey {
  static let defaultValue: String? = nil
}

/// Says in a header who makes the call, in one of the forms that interceptors have.
final class UserInterceptor: Interceptor {
  enum Form: CaseIterable, Sendable {
    case call, message, closure, update, later, onRetry
    // Not of this class:
    case async, adapter, credentials
  }

  private let form: Form
  private let header: String
  private var attemptCount = 0

  private init(_ form: Form, _ header: String) {
    self.form = form
    self.header = header
  }

  /// - Parameter user: Who makes the call, for ``Form/credentials``.
  static func factory(_ form: Form, _ header: String, user: String?) -> InterceptorFactory {
    switch form {
    case .async:
      return { _ in AsyncUserInterceptor(header: header) }
    case .adapter:
      let adapter = Adapter { request, _ in
        var request = request
        Self.add(header, to: &request)
        return request
      }
      return { _ in RequestInterceptor(adapters: [adapter]) }
    case .credentials:
      guard let user else { return { _ in NoInterceptor() } }
      let credentials = Credentials(for: ["api.test"], token: AccessToken(user)) { _ in AccessToken(user) }
      return { _ in CredentialsInterceptor(credentials) }
    default:
      return { _ in UserInterceptor(form, header) }
    }
  }

  fileprivate static func add<Message>(_ header: String, to request: inout HTTPRequest<Message>) {
    if let user = request.context[CurrentUser.self] { request.headers[header] = [user] }
  }

  func callFunction(_ method: MethodInfo) -> CallFunction {
    guard self.form == .call else { return CallFunction() }
    return CallFunction(requestFunction: { request in Self.add(self.header, to: &request) })
  }

  func unaryMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> UnaryMessageFunction<Input, Output> {
    guard self.form == .message else { return UnaryMessageFunction() }
    return UnaryMessageFunction(updateRequest: { request in Self.add(self.header, to: &request) })
  }

  func unaryFunction() -> UnaryFunction {
    switch self.form {
    case .closure:
      return UnaryFunction(requestFunction: { request, proceed in
        var request = request
        Self.add(self.header, to: &request)
        proceed(.success(request))
      })
    case .update:
      return UnaryFunction(updateRequest: { request in Self.add(self.header, to: &request) })
    case .later:
      let header = self.header
      return UnaryFunction(requestFunction: { request, proceed in
        Task {
          await Task.yield()
          var request = request
          Self.add(header, to: &request)
          proceed(.success(request))
        }
      })
    case .onRetry:
      return UnaryFunction(
        updateRequest: { request in
          self.attemptCount += 1
          if self.attemptCount > 1 { Self.add(self.header, to: &request) }
        },
        updateResponse: { response in
          response.code == .unavailable && self.attemptCount == 1 ? .retry(after: .zero) : .proceed
        }
      )
    case .call, .message, .async, .adapter, .credentials:
      return UnaryFunction()
    }
  }
}

private struct AsyncUserInterceptor: AsyncUnaryInterceptor {
  let header: String

  func interceptUnary<Input: Sendable, Output: Sendable>(
    _ request: HTTPRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: UnaryNext<Input, Output>
  ) async throws -> ResponseMessage<Output> {
    var request = request
    UserInterceptor.add(self.header, to: &request)
    return try await next(request)
  }
}

/// Lets nobody pass who is not welcome, without a word to the server.
private struct Gate: Interceptor {
  let unwelcome: String

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(updateRequest: { request in
      if request.context[CurrentUser.self] == self.unwelcome { throw ConnectError(code: .permissionDenied) }
    })
  }
}

/// A client with a cache, and with an interceptor somewhere that says who the user is.
struct RandomUsers: Sendable {
  enum Base: CaseIterable, Sendable { case bare, persisted, guarded, recommended }

  /// What the server does with a request.
  enum Answer: CaseIterable, Sendable { case good, short, isPrivate, cookie, noStore, varying, failing }

  static let names = ["ada", "bob", "eve"]
  static let headers = ["authorization", "cookie", "x-user", "x-api-key"]

  let form: UserInterceptor.Form
  let header: String
  /// Where in the client's list it stands; nil for one of the method or the call.
  var place: Int?
  var isOfMethod = false
  var base = Base.bare
  var hasGate = false
  var configuration = ResponseCache.Configuration.defaults
  var hasPartitions = false
  var unaryGET = UnaryGET.disabled
  var answers: [Answer] = []

  init(using generator: inout SeededGenerator) {
    let form = UserInterceptor.Form.allCases.randomElement(using: &generator) ?? .closure
    self.form = form
    self.header =
      form == .credentials ? "authorization" : Self.headers.randomElement(using: &generator) ?? "cookie"
    self.base = Base.allCases.randomElement(using: &generator) ?? .bare
    if form != .credentials {
      switch Int.random(in: 0..<4, using: &generator) {
      case 0: self.isOfMethod = true
      case 1: break
      default: self.place = Int.random(in: 0...8, using: &generator)
      }
    }
    self.hasGate = Bool.random(using: &generator)
    self.hasPartitions = Int.random(in: 0..<6, using: &generator) == 0
    self.unaryGET = Bool.random(using: &generator) ? .alwaysEnabled : .disabled
    self.answers = (0..<16).map { _ in
      Bool.random(using: &generator) ? .good : Answer.allCases.randomElement(using: &generator) ?? .good
    }
    self.configuration.timeToLive = .seconds(Int.random(in: 3...20, using: &generator))
    self.configuration.staleOnError = .seconds(Int.random(in: 0...20, using: &generator))
    self.configuration.sharesResponsesBetweenUsers = Int.random(in: 0..<8, using: &generator) == 0
    // Headers that are known for saying who the user is may even be left out of the key.
    let isKnown = ["authorization", "cookie"].contains(self.header)
    switch Int.random(in: 0..<4, using: &generator) {
    case 0: self.configuration.keyHeaders = .only(isKnown ? [] : [self.header])
    case 1 where isKnown: self.configuration.keyHeaders = .all(except: [self.header])
    default: break
    }
  }

  /// Whose response a user may get.
  func allowed(for user: String?) -> Set<String> {
    let own: Set<String> = [user ?? "nobody"]
    if self.hasGate, user == Self.names.last { return [] }
    if self.configuration.sharesResponsesBetweenUsers { return Set(Self.names).union(["nobody"]) }
    return self.form == .onRetry ? own.union(["nobody"]) : own
  }

  func client(_ transport: InMemoryTransport, _ executor: VirtualExecutor) -> ProtocolClient {
    let cache = ResponseCache(configuration: self.configuration, clock: executor.clock)
    let own = self.factory(user: nil)
    var interceptors = self.baseInterceptors(cache, executor)
    if self.hasGate {
      interceptors.append { _ in Gate(unwelcome: Self.names.last ?? "") }
    }
    if let place = self.place { interceptors.insert(own, at: min(place, interceptors.count)) }
    let isOfMethod = self.isOfMethod
    return ProtocolClient(
      httpClient: transport,
      config: ProtocolClientConfig(
        host: "https://api.test",
        interceptors: interceptors,
        methodInterceptors: { _ in isOfMethod ? [own] : [] },
        unaryGET: self.unaryGET
      )
    )
  }

  private func factory(user: String?) -> InterceptorFactory {
    UserInterceptor.factory(self.form, self.header, user: user)
  }

  private func baseInterceptors(_ cache: ResponseCache, _ executor: VirtualExecutor) -> [InterceptorFactory] {
    let cached: [InterceptorFactory] = [
      { _ in CacheReadInterceptor(cache) }, { _ in CacheWriteInterceptor(cache) },
    ]
    let policy = RetryPolicy(backoff: Backoff(base: .zero))
    switch self.base {
    case .bare:
      return cached
    case .persisted:
      let requests = PersistedRequests(minimumByteCount: 0, clock: executor.clock)
      return cached + [{ _ in PersistedRequestInterceptor(requests) }]
    case .guarded:
      let budget = RetryBudget(maximumTokens: 1_000_000)
      let limiter = ConcurrencyLimiter(maximumCalls: 3, clock: executor.clock)
      return cached + [
        { _ in RetryInterceptor(policy: policy, budget: budget) },
        { _ in ConcurrencyLimitInterceptor(limiter) },
      ]
    case .recommended:
      var parts = ClientParts(logger: Logger(label: "", factory: { _ in SwiftLogNoOpLogHandler() }))
      parts.metrics = nil
      parts.circuitBreaker = nil
      parts.cache = cache
      parts.retryPolicy = policy
      return .recommended(for: parts)
    }
  }

  func options(_ user: String?, _ policy: CachePolicy?) -> CallOptions {
    var options = CallOptions.cached(policy, partition: self.hasPartitions ? user : nil)
    options.context[CurrentUser.self] = user
    if self.place == nil, !self.isOfMethod { options.interceptors = [self.factory(user: user)] }
    return options
  }
}
