internal import Connect
internal import DequeModule

/// A unary call of a driver. The innermost interceptor answers its requests with the test's responses, so that nothing goes
/// to the network.
final class DriverUnaryCall: DriverCall {
  /// Answers the request that has passed the driven interceptor.
  private var answer: ((any Sendable) -> Void)?

  /// - Parameters:
  ///   - request: The test's request, without its message.
  ///   - form: The async form that is driven; nil if `hooks` are.
  ///   - method: A method with the messages of `hooks`.
  func start<Message: Sendable, Response: UnaryResponse, Output: Sendable>(
    _ message: Message,
    _ request: HTTPRequest<Void>?,
    _ form: AsyncUnaryForm?,
    _ hooks: UnaryHooks<Message, Response>,
    _ method: MethodSpec<Message, Output>
  ) {
    typealias Hooks = UnaryHooks<Message, Response>
    typealias RequestAction = RequestVerb<HTTPRequest<Message>, Response>
    typealias ResponseAction = ResponseVerb<HTTPRequest<Message>, Response>
    let outer = Hooks(responseFunction: { response, proceed in
      self.didPassOut(isOver: proceed.isOver) {
        $0.pass(
          result: ResponseAction.proceed(response),
          orAnswer: response.failure.map { RequestAction.proceed(.failure($0)) } ?? .answer(response)
        )
      }
      proceed(response)
    })
    let inner = Hooks(
      requestFunction: { request, proceed in
        self.attemptBegins(RequestAction.proceed(.success(request))) {
          ResponseAction.retry(request, after: $0)
        }
        proceed(.success(request))
      },
      responseFunction: { response, proceed in
        if self.recorder != nil { self.didReadResult() }
        proceed(response)
      }
    )
    let innermost = Hooks(requestFunction: { _, proceed in
      self.answer = { if let response = $0 as? Response { proceed.answer(response) } }
      self.feed()
    })
    let driven = form.map { FixedInterceptor(asyncUnaryForm: $0) }
    let here = Confined(self, to: self.executor)
    let handle = DriverTransport(self.executor).client(self.setup.config).unary(
      method,
      message,
      options: self.options(request, [outer, driven ?? hooks, inner, innermost])
    ) { _ in here.value.end() }
    self.didStart { handle.cancel() }
  }

  override func feed() {
    guard let answer = self.answer, let (response, record) = self.arrived.popFirst() else { return }
    self.answer = nil
    self.passed.append(record)
    answer(response)
  }

  override func release() { self.answer = nil }
}
