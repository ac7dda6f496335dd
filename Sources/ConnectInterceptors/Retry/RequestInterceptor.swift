public import Connect
internal import NIOCore
private import Synchronization

/// Request adapters and retriers as one interceptor.
///
/// ```swift
/// config.interceptors = [{ _ in RequestInterceptor(adapters: [version, signature], retriers: [once]) }]
/// ```
///
/// The adapters run in order before each attempt, and the first that throws fails the call. When an attempt fails, the
/// retriers are asked in order, and the first answer other than `doNotRetry` decides. What is both adapter and retrier comes
/// last in each direction. The client's cap on retries and the call's deadline apply as well. A stream is retried only
/// until something of its response has gone out.
///
/// To compose adapters and retriers with interceptors that have hooks, see
/// ``Swift/Array/composed(adapters:retriers:interceptors:holdsStreamHeaders:)``.
///
/// It has byte hooks, as ``RetryInterceptor`` has. Without adapters they are `HookPlacement.userIndependent`.
public final class RequestInterceptor: Interceptor {
  private let parts: RequestComposition
  private let holdsStreamHeaders: Bool
  private var method: MethodInfo?
  private var attemptCount = 0
  private var heldHeaders: HeldHeaders?
  private var hasPassedMessage = false
  /// The present attempt's request as the adapters left it.
  private var adapted: AdaptedRequest?
  /// The task that asks the adapters or the retriers.
  private var task: Task<Void, Never>?

  /// An interceptor for one call. Adapters and retriers are asked in their order.
  ///
  /// - Parameters:
  ///   - adapters: Run before each attempt. Each receives the result of the previous adapter.
  ///   - retriers: Asked when an attempt fails, until the first answer other than `doNotRetry`.
  ///   - interceptors: What is both. They adapt behind all adapters, and are asked behind all retriers.
  ///   - holdsStreamHeaders: As ``RetryPolicy/holdsStreamHeaders``. Without retriers nothing is held.
  public init(
    adapters: [any RequestAdapter] = [],
    retriers: [any RequestRetrier] = [],
    interceptors: [any RequestAdapter & RequestRetrier] = [],
    holdsStreamHeaders: Bool = true
  ) {
    self.parts = RequestComposition(adapters: adapters, retriers: retriers, interceptors: interceptors)
    self.holdsStreamHeaders = holdsStreamHeaders
  }

  // MARK: Hooks

  public func callFunction(_ method: MethodInfo) -> CallFunction {
    CallFunction(endFunction: { _ in self.task?.cancel() })
  }

  public func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      requestFunction: { request, proceed in
        self.begin(request.with(request.message), streamType: .unary, on: proceed.requiredTaskExecutor) {
          result in
          proceed(result.map { $0.with($0.message ?? request.message) })
        }
      },
      responseFunction: self.parts.retriers.isEmpty
        ? nil
        : { response, proceed in
          guard let error = response.error, !proceed.isOver else {
            proceed(response)
            return
          }
          self.ask(dueTo: error, on: proceed.requiredTaskExecutor) { decision in
            switch decision {
            case .retry: proceed.retry()
            case .retryWithDelay(let delay): proceed.retry(after: delay)
            case .doNotRetry: proceed(response)
            case .doNotRetryWithError(let error):
              var response = response
              response.error = error
              proceed(response)
            }
          }
        }
    )
    .placed(self.parts.adapters.isEmpty ? .userIndependent : .asListed)
  }

  public func streamFunction() -> StreamFunction {
    StreamFunction(
      requestFunction: { request, proceed in
        self.heldHeaders = nil
        self.hasPassedMessage = false
        self.begin(request.with(nil), streamType: .bidirectionalStream, on: proceed.requiredTaskExecutor) {
          result in
          proceed(result.map { $0.with(()) })
        }
      },
      streamResultFunction: self.parts.retriers.isEmpty
        ? nil : { result, proceed in self.receive(result, proceed) }
    )
  }

  private func receive(_ result: StreamResult<ByteBuffer>, _ proceed: StreamFunction.ResultProceed) {
    if case .headers = result, self.holdsStreamHeaders {
      self.heldHeaders = HeldHeaders(result, proceed)
      return
    }
    let headers = self.heldHeaders.take()
    guard case .complete(_, let error?, let trailers) = result, !self.hasPassedMessage, !proceed.isOver else {
      if case .message = result { self.hasPassedMessage = true }
      headers?.release()
      proceed(result)
      return
    }
    self.ask(dueTo: error, on: proceed.requiredTaskExecutor) { decision in
      switch decision {
      case .retry: proceed.retry()
      case .retryWithDelay(let delay): proceed.retry(after: delay)
      case .doNotRetry: proceed(result)
      case .doNotRetryWithError(let error):
        proceed(.complete(code: error.code, error: error, trailers: trailers))
      }
      // If there is no other attempt, the headers go out before the error. Otherwise this does nothing.
      headers?.release()
    }
  }

  // MARK: Adapters

  private func begin(
    _ request: HTTPRequest<ByteBuffer?>,
    streamType: StreamType,
    on executor: (any TaskExecutor)?,
    then proceed: @escaping @Sendable (Result<HTTPRequest<ByteBuffer?>, ConnectError>) -> Void
  ) {
    self.task?.cancel()
    self.task = nil
    self.attemptCount += 1
    let adapted = AdaptedRequest(request)
    self.adapted = adapted
    // The method is known, unless a test drives the byte hooks alone.
    let method = request.method ?? MethodInfo(path: request.url.path, streamType: streamType)
    self.method = method
    guard !self.parts.adapters.isEmpty else {
      proceed(.success(request))
      return
    }
    self.run(on: executor) { [parts] in
      do {
        let request = try await parts.adapt(request, for: method)
        adapted.value.withLock { $0 = request }
        proceed(.success(request))
      } catch {
        proceed(.failure(ConnectError(error)))
      }
    }
  }

  // MARK: Retriers

  private func ask(
    dueTo error: ConnectError,
    on executor: (any TaskExecutor)?,
    then decide: @escaping @Sendable (RetryResult) -> Void
  ) {
    guard let adapted = self.adapted, let method = self.method else {
      decide(.doNotRetry)
      return
    }
    let attempt = FailedAttempt(
      error: error,
      request: adapted.value.withLock { $0 },
      number: self.attemptCount,
      method: method
    )
    self.run(on: executor) { [parts] in decide(await parts.retry(attempt)) }
  }

  private func run(on executor: (any TaskExecutor)?, _ work: @escaping @Sendable () async -> Void) {
    let attempt = self.attemptCount
    let task = Task.immediate(executorPreference: executor) { await work() }
    // The task may already have begun the next attempt, which has another task.
    if attempt == self.attemptCount { self.task = task }
  }
}

/// A request that adapters change in their task.
private final class AdaptedRequest: Sendable {
  let value: Mutex<HTTPRequest<ByteBuffer?>>

  init(_ request: HTTPRequest<ByteBuffer?>) {
    self.value = Mutex(request)
  }
}
