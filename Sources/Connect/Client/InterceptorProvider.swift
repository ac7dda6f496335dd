/// Chooses the interceptors of a call by its request: its headers and context and, for unary calls, its message.
///
/// ```swift
/// struct AuditProvider: InterceptorProvider {
///   func interceptors<Input, Output>(
///     for request: HTTPRequest<Input?>,
///     of method: MethodSpec<Input, Output>
///   ) -> MethodInterceptors {
///     guard request.message is Order, request.headers.contains("x-audit") else { return [] }
///     return [{ MyInterceptor(config: $0) }]
///   }
/// }
/// ```
///
/// A provider that needs the method alone is ``ProtocolClientConfig/methodInterceptors``.
public protocol InterceptorProvider: Sendable {
  /// Called once for each call, in the task that makes the call, before any interceptor is made. It must not block.
  ///
  /// - Parameters:
  ///   - request: The request as the caller makes it, with inherited context. Its message is nil for a stream, whose messages
  ///     follow.
  ///   - method: The method that is called.
  /// - Returns: Further interceptors, inside of those of the client and the method, or interceptors that replace all of these.
  ///   The call's own interceptors (``CallOptions/interceptors``) are added in either case.
  func interceptors<Input: Sendable, Output: Sendable>(
    for request: HTTPRequest<Input?>,
    of method: MethodSpec<Input, Output>
  ) -> MethodInterceptors
}

/// Asks a provider for the interceptors of a call.
struct ProviderVisitor: MethodVisitor {
  private final class Answer {
    var interceptors: MethodInterceptors = []
  }

  private let provider: any InterceptorProvider
  private let request: RequestPart
  private let answer = Answer()

  private init(_ provider: any InterceptorProvider, _ request: RequestPart) {
    self.provider = provider
    self.request = request
  }

  /// - Returns: Nil if there is no provider.
  @inline(never)
  static func ask(
    _ config: ProtocolClientConfig,
    _ method: AnyMethod,
    _ options: CallOptions,
    _ side: any CallSide,
    _ environment: CallEnvironment
  ) -> MethodInterceptors? {
    guard let provider = config.interceptorProvider else { return nil }
    let head = environment.makeRequestHead(
      for: method.info,
      headers: options.headers,
      context: options.context,
      timeout: options.timeout ?? config.timeout,
      retryRules: nil,
      authority: options.rare?.values.authority
    )
    let visitor = ProviderVisitor(provider, side.makeRequest(head))
    method.accept(visitor)
    return visitor.answer.interceptors
  }

  func visit<Input: Sendable, Output: Sendable>(_ method: MethodSpec<Input, Output>) {
    guard let head = self.request.head else { return }
    let message: Input? =
      if case .whole(_, let message) = self.request { MessageBox<Input>.of(message).message } else { nil }
    self.answer.interceptors = self.provider.interceptors(
      for: HTTPRequest(head: head, box: MessageBox(message)),
      of: method
    )
  }
}
