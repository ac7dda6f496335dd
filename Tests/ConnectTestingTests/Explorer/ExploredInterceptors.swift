import Connect
import ConnectTesting
import NIOCore
import Synchronization

/// Tokens that are fetched when a server says `unauthenticated`.
final class TokenStore: Sendable {
  private struct State {
    var token = "token-0"
    var refreshes = 0
    var refresh: Task<String, any Error>?
  }

  private let state = Mutex(State())
  private let isShared: Bool
  private let fetch: @Sendable () async throws -> String

  /// - Parameter isShared: Whether calls that need a token at the same time share one refresh.
  init(isShared: Bool, fetch: @escaping @Sendable () async throws -> String) {
    self.isShared = isShared
    self.fetch = fetch
  }

  var token: String { self.state.withLock { $0.token } }
  var refreshes: Int { self.state.withLock { $0.refreshes } }

  /// A token other than `old`.
  func token(after old: String) async throws -> String {
    guard self.isShared else { return try await self.refresh() }
    let task = self.state.withLock { state -> Task<String, any Error>? in
      guard state.token == old else { return nil }
      let task = state.refresh ?? Task { try await self.refresh() }
      state.refresh = task
      return task
    }
    return try await task?.value ?? self.token
  }

  private func refresh() async throws -> String {
    self.state.withLock { $0.refreshes += 1 }
    defer { self.state.withLock { $0.refresh = nil } }
    let token = try await self.fetch()
    self.state.withLock { $0.token = token }
    return token
  }
}

/// Adds a token, and repeats the call once with a new one.
struct TokenInterceptor: AsyncUnaryInterceptor {
  let store: TokenStore

  func interceptUnary<Input: Sendable, Output: Sendable>(
    _ request: HTTPRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: UnaryNext<Input, Output>
  ) async throws -> ResponseMessage<Output> {
    var request = request
    let token = self.store.token
    request.headers["authorization"] = [token]
    let response = try await next(request)
    guard response.code == .unauthenticated else { return response }
    request.headers["authorization"] = [try await self.store.token(after: token)]
    return try await next(request)
  }
}

/// Byte hooks given as closures.
final class HookedInterceptor: Interceptor {
  private let hooks: () -> UnaryFunction

  init(_ hooks: @escaping () -> UnaryFunction) {
    self.hooks = hooks
  }

  func unaryFunction() -> UnaryFunction { self.hooks() }
}

extension HookedInterceptor {
  /// Keeps the code and the trailers of an error, and nothing else.
  static func redactingErrors() -> HookedInterceptor {
    HookedInterceptor {
      UnaryFunction(updateResponse: { response in
        guard let error = response.error else { return .proceed }
        response = HTTPResponse(
          error: ConnectError(code: error.code, message: "the server failed", metadata: response.trailers)
        )
        return .proceed
      })
    }
  }
}

/// Answers from the last good response, whatever the request. For calls with equal requests.
struct LastResponseInterceptor: AsyncUnaryInterceptor {
  final class Store: Sendable {
    let response = Mutex<(any Sendable)?>(nil)
  }

  let store: Store

  func interceptUnary<Input: Sendable, Output: Sendable>(
    _ request: HTTPRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: UnaryNext<Input, Output>
  ) async throws -> ResponseMessage<Output> {
    if let response = self.store.response.withLock({ $0 }) as? ResponseMessage<Output> { return response }
    let response = try await next(request)
    if response.code == .ok { self.store.response.withLock { $0 = response } }
    return response
  }
}

/// Byte hooks of streams given as closures.
final class HookedStreamInterceptor: Interceptor {
  private let hooks: () -> StreamFunction

  init(_ hooks: @escaping () -> StreamFunction) {
    self.hooks = hooks
  }

  func streamFunction() -> StreamFunction { self.hooks() }
}

/// Passes everything on, with all hooks there are.
final class PassingInterceptor: Interceptor {
  func callFunction(_ method: MethodInfo) -> CallFunction {
    CallFunction(requestFunction: { _ in }, outcomeFunction: { _ in }, endFunction: { _ in })
  }

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      requestFunction: { $1(.success($0)) },
      responseFunction: { $1($0) },
      responseMetricsFunction: { $1($0) }
    )
  }

  func unaryMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> UnaryMessageFunction<Input, Output> {
    UnaryMessageFunction(requestFunction: { $1(.success($0)) }, responseFunction: { $1($0) })
  }

  func streamFunction() -> StreamFunction {
    StreamFunction(
      requestFunction: { $1(.success($0)) },
      requestDataFunction: { $1($0) },
      streamResultFunction: { $1($0) }
    )
  }

  func streamMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> StreamMessageFunction<Input, Output> {
    StreamMessageFunction(
      requestFunction: { $1(.success($0)) },
      requestMessageFunction: { $1($0) },
      streamResultFunction: { $1($0) }
    )
  }
}

/// Passes everything on, in the async forms.
struct PassingAsyncInterceptor: AsyncUnaryInterceptor, AsyncStreamInterceptor {
  func interceptUnary<Input: Sendable, Output: Sendable>(
    _ request: HTTPRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: UnaryNext<Input, Output>
  ) async throws -> ResponseMessage<Output> {
    try await next(request)
  }

  func interceptStream<Input: Sendable, Output: Sendable>(
    _ request: StreamRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: StreamNext<Input, Output>
  ) async throws -> StreamResponse<Output> {
    try await next(request)
  }
}

/// Counts on any thread.
final class TestCount: Sendable {
  private let count = Mutex(0)

  var value: Int { self.count.withLock { $0 } }

  func add(_ amount: Int = 1) { self.count.withLock { $0 += amount } }
}
