public import Connect
internal import NIOCore

/// An interceptor that does one thing by plan, for chains in tests. Several of them make a longer plan.
///
/// ```swift
/// config.interceptors = [
///   ScriptedInterceptor.factory(.retry(2, after: .seconds(1))),
///   ScriptedInterceptor.factory(.fail(ConnectError(code: .unavailable), attempts: 2)),
/// ]
/// ```
public final class ScriptedInterceptor: Interceptor {
  /// Where a call is held up.
  public enum Direction: Sendable, Hashable {
    /// At the request; for a stream at its head.
    case request
    /// At the response; for a stream at each result.
    case response
  }

  /// The one thing that the interceptor does.
  public enum Action: Sendable {
    /// Fails the first attempts of a call, all by default, before they get further inwards.
    case fail(ConnectError, attempts: Int = .max)
    /// Answers a call without the network. Messages must have the type of the hook's responses: the method's output, or
    /// `ByteBuffer` in byte hooks. If not, or for a unary call without messages, the call fails with `internal`. A unary
    /// call takes the first message.
    case answer([any Sendable])
    /// Passes on after a time on the executor's clock. This is the call's clock if its transport has the same executor.
    case delay(Duration, at: Direction = .request, on: any CallExecutor)
    /// Asks for a retry after errors that `when` accepts, at most this often in each call.
    case retry(Int, after: Duration = .zero, when: @Sendable (ConnectError) -> Bool = { _ in true })
    /// Replaces each error by another.
    case mapErrors(@Sendable (ConnectError) -> ConnectError)
    /// Holds on to `proceed` and never calls it.
    case neverProceed(at: Direction = .request)
    /// Calls `proceed` twice with its argument, which is a mistake.
    case proceedTwice(at: Direction = .request)
  }

  /// Which hooks of the interceptor act.
  public enum Level: Sendable, Hashable {
    /// Its message hooks.
    case message
    /// Its byte hooks.
    case byte
  }

  private let action: Action
  private let level: Level
  /// How often the action was done in this call.
  private var count = 0
  private var kept: [any Sendable] = []

  private init(_ action: Action, _ level: Level) {
    self.action = action
    self.level = level
  }

  /// Makes an interceptor that does `action` in its message hooks, or in its byte hooks, of unary calls and streams.
  public static func factory(_ action: Action, level: Level = .message) -> InterceptorFactory {
    { _ in ScriptedInterceptor(action, level) }
  }

  public func unaryFunction() -> UnaryFunction {
    self.level == .byte ? self.unaryHooks().placed(.userIndependent) : UnaryFunction()
  }

  public func streamFunction() -> StreamFunction {
    self.level == .byte ? self.streamHooks() : StreamFunction()
  }

  public func unaryMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> UnaryMessageFunction<Input, Output> {
    self.level == .message ? self.unaryHooks() : UnaryMessageFunction()
  }

  public func streamMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> StreamMessageFunction<Input, Output> {
    self.level == .message ? self.streamHooks() : StreamMessageFunction()
  }

  // MARK: Hooks

  private func unaryHooks<Message, Response: UnaryResponse>() -> UnaryHooks<Message, Response> {
    typealias Hooks = UnaryHooks<Message, Response>
    let onRequest: ((HTTPRequest<Message>, Hooks.RequestProceed) -> Void)? = self.requestFunction {
      (messages: [Response.Message]) in
      guard let message = messages.first else { throw Self.noAnswer }
      return Response.answer(message)
    }
    let onResponse: ((Response, Hooks.ResponseProceed) -> Void)? = self.responseFunction(
      error: { $0.failure },
      replacing: { $0.replacing($1) },
      proceed: { $0($1) },
      retry: { $0.retry(after: $1) }
    )
    return Hooks(requestFunction: onRequest, responseFunction: onResponse)
  }

  private func streamHooks<Message, Output>() -> StreamHooks<Message, Output> {
    typealias Hooks = StreamHooks<Message, Output>
    let onRequest: ((HTTPRequest<Void>, Hooks.RequestProceed) -> Void)? = self.requestFunction {
      (messages: [Output]) in
      StreamAnswer<Output>(messages: messages)
    }
    let onResult: ((StreamResult<Output>, Hooks.ResultProceed) -> Void)? = self.responseFunction(
      error: { result in
        if case .complete(_, let error, _) = result { error } else { nil }
      },
      replacing: { result, error in
        guard case .complete(_, _, let trailers) = result else { return result }
        return .complete(code: error.code, error: error, trailers: trailers)
      },
      proceed: { $0($1) },
      retry: { $0.retry(after: $1) }
    )
    return Hooks(requestFunction: onRequest, streamResultFunction: onResult)
  }

  private static var noAnswer: ConnectError {
    ConnectError(code: .internalError, message: "a scripted interceptor has no message to answer with")
  }

  /// - Parameter makeAnswer: Throws ``ConnectError``.
  private func requestFunction<Request, Output, Answer>(
    makeAnswer: @escaping ([Output]) throws -> Answer
  ) -> ((Request, Proceed<RequestVerb<Request, Answer>>) -> Void)? {
    switch self.action {
    case .fail(let error, let attempts):
      return { request, proceed in
        self.count += 1
        proceed(self.count <= attempts ? .failure(error) : .success(request))
      }
    case .answer(let messages):
      return { _, proceed in
        do {
          proceed.answer(try makeAnswer(try messages.map { try Self.cast($0) }))
        } catch {
          proceed(.failure(ConnectError(error)))
        }
      }
    case .delay(let duration, at: .request, let executor):
      return { request, proceed in
        executor.run { _ = executor.schedule(after: duration) { proceed(.success(request)) } }
      }
    case .neverProceed(at: .request):
      return { _, proceed in self.kept.append(proceed) }
    case .proceedTwice(at: .request):
      return { request, proceed in
        proceed(.success(request))
        proceed(.success(request))
      }
    case .delay, .neverProceed, .proceedTwice, .retry, .mapErrors:
      return nil
    }
  }

  private static func cast<Output>(_ message: any Sendable) throws -> Output {
    guard let output = message as? Output else {
      throw ConnectError(
        code: .internalError,
        message: "a scripted interceptor was to answer with \(type(of: message)) where \(Output.self) is due"
      )
    }
    return output
  }

  private func responseFunction<Response: Sendable, Verb>(
    error: @escaping (Response) -> ConnectError?,
    replacing: @escaping (Response, ConnectError) -> Response,
    proceed pass: @escaping @Sendable (Proceed<Verb>, Response) -> Void,
    retry: @escaping (Proceed<Verb>, Duration) -> Void
  ) -> ((Response, Proceed<Verb>) -> Void)? {
    switch self.action {
    case .retry(let times, let delay, let condition):
      return { response, proceed in
        guard let error = error(response), self.count < times, condition(error) else {
          return pass(proceed, response)
        }
        self.count += 1
        retry(proceed, delay)
      }
    case .mapErrors(let transform):
      return { response, proceed in
        pass(proceed, error(response).map { replacing(response, transform($0)) } ?? response)
      }
    case .delay(let duration, at: .response, let executor):
      return { response, proceed in
        executor.run { _ = executor.schedule(after: duration) { pass(proceed, response) } }
      }
    case .neverProceed(at: .response):
      return { _, proceed in self.kept.append(proceed) }
    case .proceedTwice(at: .response):
      return { response, proceed in
        pass(proceed, response)
        pass(proceed, response)
      }
    case .delay, .neverProceed, .proceedTwice, .fail, .answer:
      return nil
    }
  }
}

/// A response to a unary call, at either level.
protocol UnaryResponse: Sendable {
  associatedtype Message: Sendable

  static func answer(_ message: Message) -> Self
  var failure: ConnectError? { get }
  /// The same response with another error.
  func replacing(_ error: ConnectError) -> Self
}

extension HTTPResponse: UnaryResponse {
  static func answer(_ message: ByteBuffer) -> HTTPResponse { HTTPResponse(message: message) }

  var failure: ConnectError? { self.error }

  func replacing(_ error: ConnectError) -> HTTPResponse {
    var response = self
    response.error = error
    return response
  }
}

extension ResponseMessage: UnaryResponse {
  static func answer(_ message: Output) -> ResponseMessage { ResponseMessage(message: message) }

  var failure: ConnectError? { self.error }

  func replacing(_ error: ConnectError) -> ResponseMessage {
    var response = self
    response.result = .failure(error)
    return response
  }
}
