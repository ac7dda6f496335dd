public import Connect
public import NIOCore

/// Decides whether a failed call is retried.
///
/// For ``RequestInterceptor``. A retrier is shared by all calls that it is given to. For the form with a completion, see
/// ``CallbackRequestRetrier``.
public protocol RequestRetrier: Sendable {
  /// Called when an attempt has failed, as long as nothing of its response has gone out to the caller. Not called when the
  /// call ends by its own deadline or cancellation. The task is cancelled when the call ends; it begins on the call's
  /// executor, where it must not block.
  func retry(_ attempt: FailedAttempt) async -> RetryResult
}

/// A ``RequestRetrier`` with a completion in place of `async`.
public protocol CallbackRequestRetrier: RequestRetrier {
  /// Called when an attempt has failed, as ``RequestRetrier/retry(_:)``.
  ///
  /// - Parameters:
  ///   - attempt: The attempt that failed.
  ///   - completion: To be called once, from any thread, with the answer.
  func retry(_ attempt: FailedAttempt, completion: Retrier.Completion)
}

extension CallbackRequestRetrier {
  public func retry(_ attempt: FailedAttempt) async -> RetryResult {
    let error = ConnectError(
      code: .internalError,
      message: "\(Self.self) decides about a retry of \(attempt.method.path), and let go of its completion "
        + "without calling it"
    )
    return await Retrier.Completion.wait(ifReleased: .doNotRetryWithError(error), ifCancelled: .doNotRetry) {
      self.retry(attempt, completion: $0)
    }
  }
}

/// An attempt that failed, as a ``RequestRetrier`` sees it.
public struct FailedAttempt: Sendable {
  /// Why the attempt failed.
  public var error: ConnectError
  /// The request as the adapters left it; `message` is nil for streams.
  public var request: HTTPRequest<ByteBuffer?>
  /// The number of the attempt: 1 for the first.
  public var number: Int
  /// The method that is called.
  public var method: MethodInfo

  /// A failed attempt, for tests of retriers.
  public init(error: ConnectError, request: HTTPRequest<ByteBuffer?>, number: Int, method: MethodInfo) {
    self.error = error
    self.request = request
    self.number = number
    self.method = method
  }
}

/// The answer of a ``RequestRetrier``.
public enum RetryResult: Sendable {
  /// Make another attempt at once.
  case retry
  /// Make another attempt after a delay. If that would pass the call's deadline, there is none.
  case retryWithDelay(Duration)
  /// No opinion: the next retrier is asked. After the last one the call fails with its error.
  case doNotRetry
  /// Fail the call with this error.
  case doNotRetryWithError(ConnectError)
}

/// A ``RequestRetrier`` that is a closure, `async` or with a completion.
///
/// ```swift
/// let once = Retrier { attempt in
///   attempt.error.code == .aborted && attempt.number == 1 ? .retryWithDelay(.milliseconds(50)) : .doNotRetry
/// }
/// ```
public struct Retrier: RequestRetrier {
  /// The retrier as a closure; see ``RequestRetrier/retry(_:)``.
  public typealias Body = @Sendable (FailedAttempt) async -> RetryResult
  /// The retrier as a closure; see ``CallbackRequestRetrier/retry(_:completion:)``.
  public typealias CallbackBody = @Sendable (FailedAttempt, Completion) -> Void
  /// What a retrier in callback form calls.
  public typealias Completion = RequestCompletion<RetryResult>

  private struct CallbackRetrier: CallbackRequestRetrier {
    let body: CallbackBody

    func retry(_ attempt: FailedAttempt, completion: Completion) { self.body(attempt, completion) }
  }

  private let body: Body

  /// A retrier that calls `body`.
  public init(_ body: @escaping Body) {
    self.body = body
  }

  /// A retrier that calls `body`, and waits for its completion.
  public init(_ body: @escaping CallbackBody) {
    let callback = CallbackRetrier(body: body)
    self.body = { await callback.retry($0) }
  }

  public func retry(_ attempt: FailedAttempt) async -> RetryResult {
    await self.body(attempt)
  }
}
