public import Connect

/// Runs the call hooks of one interceptor; see ``InterceptorDriver``.
public final class CallHookDriver: Sendable {
  private let driven: Confined<DrivenInterceptor>
  private let method: MethodInfo
  private let executor: VirtualExecutor

  init(_ driven: Confined<DrivenInterceptor>, _ method: MethodInfo, _ executor: VirtualExecutor) {
    self.driven = driven
    self.method = method
    self.executor = executor
    executor.sync { driven.value.tell(method) }
  }

  /// Gives the request hook a request.
  ///
  /// - Returns: The request as the hook has left it.
  /// - Throws: What the hook throws.
  public func request(_ request: HTTPRequest<Void>) throws -> HTTPRequest<Void> {
    try self.executor.sync {
      Result {
        var request = request
        try self.driven.value.callHooks(self.method).requestFunction?(&request)
        return request
      }
    }.get()
  }

  /// Gives the outcome hook an outcome.
  ///
  /// - Returns: The outcome as the hook has left it.
  public func outcome(_ outcome: CallOutcome) -> CallOutcome {
    self.executor.sync {
      var outcome = outcome
      self.driven.value.callHooks(self.method).outcomeFunction?(&outcome)
      return outcome
    }
  }
}
