extension ProtocolClient {
  /// Makes a unary call and waits for its outcome. Cancelling the task cancels the call on the wire.
  ///
  /// - Returns: The message or the error, with the metadata around it; `get()` throws the error.
  public func unary<Input, Output>(
    _ method: MethodSpec<Input, Output>,
    _ request: Input,
    options: CallOptions = CallOptions()
  ) async -> ResponseMessage<Output> {
    let mailbox = Mailbox<ResponseMessage<Output>>(executor: self.executor)
    let call = UnaryCall(
      client: self,
      method: method,
      input: request,
      options: options,
      outerRunner: mailbox,
      completion: { mailbox.post(.success($0)) }
    )
    let handle = CallHandle(call)
    return await withTaskCancellationHandler {
      do {
        return try await mailbox.value { call.startOnExecutor() }
      } catch {
        return ResponseMessage(error: ConnectError(error))
      }
    } onCancel: {
      handle.cancel()
    }
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
    let runner = self.makeRunner(for: options)
    var completion = completion
    if let runner {
      completion = { [completion] response in
        runner.post(.success(()))
        completion(response)
      }
    }
    let call = UnaryCall(
      client: self,
      method: method,
      input: request,
      options: options,
      outerRunner: runner,
      completion: completion
    )
    call.start()
    return CallHandle(call)
  }
}
