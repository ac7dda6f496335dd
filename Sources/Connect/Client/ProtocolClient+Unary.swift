extension ProtocolClient {
  /// Makes a unary call and waits for its outcome. Cancelling the task cancels the call on the wire.
  ///
  /// - Returns: The message or the error, with the metadata around it; `get()` throws the error.
  public nonisolated(nonsending) func unary<Input, Output>(
    _ method: MethodSpec<Input, Output>,
    _ request: Input,
    options: consuming CallOptions = CallOptions()
  ) async -> ResponseMessage<Output> {
    let side = UnarySide(method.box(request))
    let call = self.makeCall(of: method.erased, as: .unary, options, side)
    return ResponseMessage(await UnarySide.response(of: call, Confined(side, to: call.executor)))
  }

  /// Makes a unary call and calls back once with its outcome.
  ///
  /// - Parameters:
  ///   - method: The method to call. Its stream type must be ``StreamType/unary``; the client does not check this.
  ///   - request: The request's message.
  ///   - options: Override the client's configuration for this call, for example its timeout.
  ///   - completion: Called on the call's executor, which for sockets is an event loop: it must not block.
  /// - Returns: A handle to cancel the call with. Dropping it does not.
  @discardableResult
  public func unary<Input, Output>(
    _ method: MethodSpec<Input, Output>,
    _ request: Input,
    options: consuming CallOptions = CallOptions(),
    completion: @escaping @Sendable (ResponseMessage<Output>) -> Void
  ) -> CallHandle {
    let side = UnarySide(method.box(request)) { completion(ResponseMessage($0)) }
    let call = self.makeCall(of: method.erased, as: .unary, options, side)
    call.run { $0.startOnExecutor() }
    return CallHandle(call)
  }
}
