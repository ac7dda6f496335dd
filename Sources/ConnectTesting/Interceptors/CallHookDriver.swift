public import Connect

/// Runs the call hooks of one interceptor, and what observes attempts; see ``InterceptorDriver``.
public final class CallHookDriver: Sendable {
  private let driven: Confined<InterceptorUnderTest>
  private let method: MethodInfo
  private let executor: VirtualExecutor

  init(_ driven: Confined<InterceptorUnderTest>, _ method: MethodInfo, _ executor: VirtualExecutor) {
    self.driven = driven
    self.method = method
    self.executor = executor
    executor.sync { driven.value.tell(method) }
  }

  /// Gives the request hook a request.
  ///
  /// - Returns: The request as it goes on in a call: as the hook has left it, with what belongs to the call.
  /// - Throws: What the hook throws.
  public func request(_ request: HTTPRequest<Void>) throws -> HTTPRequest<Void> {
    try self.executor.sync {
      Result {
        var request = self.driven.value.complete(request, self.method.streamType)
        if let function = self.driven.value.callHooks(self.method).requestFunction {
          try request.change(by: function)
        }
        return request
      }
    }.get()
  }

  /// Gives the retry hook an outcome.
  ///
  /// - Returns: The retry that the hook asks for; nil for none.
  public func retry(after outcome: CallOutcome) -> RetryRequest? {
    self.executor.sync { self.driven.value.callHooks(self.method).retryFunction?(outcome) }
  }

  /// Tells what observes the call's attempts of an event. It hears of these alone: a driver has no network, and so no attempts of
  /// its own.
  public func attempt(_ event: AttemptEvent) {
    self.executor.sync { self.driven.value.observe(event) }
  }

  /// Gives the outcome hook an outcome.
  ///
  /// - Returns: The outcome as it goes on in a call: as the hook has left it, but a failure stays a failure.
  public func outcome(_ outcome: CallOutcome) -> CallOutcome {
    self.executor.sync {
      var outcome = outcome
      if let function = self.driven.value.callHooks(self.method).outcomeFunction {
        outcome.change(by: function)
      }
      return outcome
    }
  }
}
