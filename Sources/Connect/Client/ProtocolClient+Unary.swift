extension ProtocolClient {
  /// Makes a unary call and waits for its outcome. Cancelling the task cancels the call on the wire.
  ///
  /// - Returns: The message or the error, with the metadata around it; `get()` throws the error.
  public func unary<Input, Output>(
    _ method: MethodSpec<Input, Output>,
    _ request: Input,
    options: CallOptions = CallOptions()
  ) async -> ResponseMessage<Output> {
    let call = UnaryCall(client: self, method: method, input: request, options: options)
    await withTaskCancellationHandler {
      await call.run()
    } onCancel: {
      call.cancel()
    }
    return call.response
  }

  /// Makes a unary call and calls back once with its outcome.
  ///
  /// - Parameter completion: Called on the call's executor, which for sockets is an event loop: it must not
  ///   block.
  /// - Returns: A handle to cancel the call with. Dropping it does not.
  @discardableResult
  public func unary<Input, Output>(
    _ method: MethodSpec<Input, Output>,
    _ request: Input,
    options: CallOptions = CallOptions(),
    completion: @escaping @Sendable (ResponseMessage<Output>) -> Void
  ) -> CallHandle {
    let call = UnaryCall(
      client: self,
      method: method,
      input: request,
      options: options,
      completion: completion
    )
    call.start()
    return CallHandle(call)
  }
}
