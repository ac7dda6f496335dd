// MARK: - async

extension ProtocolClient {
  /// Starts a call that answers `request` with a stream.
  public func serverStream<Input, Output>(
    _ method: MethodSpec<Input, Output>,
    _ request: Input,
    options: CallOptions = CallOptions()
  ) -> ServerStream<Input, Output> {
    let session = StreamSession(
      client: self,
      method: method.erased,
      streamType: .serverStream,
      options: options
    )
    session.start(sending: MessageBox(request))
    return ServerStream(session: session)
  }

  /// Starts a call that answers one message with a stream. The caller sends that message, and ends the request.
  package func openServerStream<Input, Output>(
    _ method: MethodSpec<Input, Output>,
    options: CallOptions
  ) -> BidirectionalStream<Input, Output> {
    let session = StreamSession(
      client: self,
      method: method.erased,
      streamType: .serverStream,
      options: options
    )
    session.start()
    return BidirectionalStream(session: session)
  }

  /// Starts a call that answers a stream of messages with one message.
  public func clientStream<Input, Output>(
    _ method: MethodSpec<Input, Output>,
    options: CallOptions = CallOptions()
  ) -> ClientStream<Input, Output> {
    ClientStream(session: ClientStreamSession(client: self, method: method.erased, options: options))
  }

  /// Starts a call with streams in both directions.
  public func bidirectionalStream<Input, Output>(
    _ method: MethodSpec<Input, Output>,
    options: CallOptions = CallOptions()
  ) -> BidirectionalStream<Input, Output> {
    let session = StreamSession(
      client: self,
      method: method.erased,
      streamType: .bidirectionalStream,
      options: options
    )
    session.start()
    return BidirectionalStream(session: session)
  }
}

// MARK: - Callbacks

extension ProtocolClient {
  /// Starts a call that answers `request` with a stream, and calls back with each result.
  ///
  /// - Parameters:
  ///   - method: The method to call. Its stream type must be ``StreamType/serverStream``; the client does not check this.
  ///   - request: The only message of the request, which ends after it.
  ///   - options: Override the client's configuration for this call, for example its timeout.
  ///   - demand: How many results may come before ``StreamHandle/request(_:)`` asks for more.
  ///   - onResult: Called on the call's executor, which for sockets is an event loop: it must not block. The
  ///     last result is `.complete`, and comes exactly once.
  /// - Returns: A handle on the call. Dropping it does not cancel.
  @discardableResult
  public func serverStream<Input, Output>(
    _ method: MethodSpec<Input, Output>,
    _ request: Input,
    options: CallOptions = CallOptions(),
    demand: Int = .max,
    onResult: @escaping @Sendable (StreamResult<Output>) -> Void
  ) -> StreamHandle<Input, Output> {
    let handle = self.openServerStream(method, options: options, demand: demand, onResult: onResult)
    handle.send(request)
    handle.finish()
    return handle
  }

  /// Starts a call that answers one message with a stream. The caller sends that message, and ends the request.
  package func openServerStream<Input, Output>(
    _ method: MethodSpec<Input, Output>,
    options: CallOptions,
    demand: Int = .max,
    onResult: @escaping @Sendable (StreamResult<Output>) -> Void
  ) -> StreamHandle<Input, Output> {
    self.stream(method, .serverStream, options, demand: demand, onResult)
  }

  /// Starts a call that answers a stream of messages with one message, and calls back once with the response.
  ///
  /// - Parameters:
  ///   - method: The method to call. Its stream type must be ``StreamType/clientStream``; the client does not check this.
  ///   - options: Override the client's configuration for this call, for example its timeout.
  ///   - completion: Called on the call's executor, which for sockets is an event loop: it must not block.
  /// - Returns: A handle to send with. Dropping it does not cancel.
  public func clientStream<Input, Output>(
    _ method: MethodSpec<Input, Output>,
    options: CallOptions = CallOptions(),
    completion: @escaping @Sendable (ResponseMessage<Output>) -> Void
  ) -> StreamHandle<Input, Output> {
    let call = self.makeClientStream(method.erased, options) { completion(ResponseMessage($0)) }
    return self.start(call, demand: .max)
  }

  /// Starts a call with streams in both directions, and calls back with each result.
  ///
  /// - Parameters:
  ///   - method: The method to call. Its stream type must be ``StreamType/bidirectionalStream``; the client does not check this.
  ///   - options: Override the client's configuration for this call, for example its timeout.
  ///   - demand: How many results may come before ``StreamHandle/request(_:)`` asks for more.
  ///   - onResult: Called on the call's executor, which for sockets is an event loop: it must not block. The
  ///     last result is `.complete`, and comes exactly once.
  /// - Returns: A handle to send with. Dropping it does not cancel.
  public func bidirectionalStream<Input, Output>(
    _ method: MethodSpec<Input, Output>,
    options: CallOptions = CallOptions(),
    demand: Int = .max,
    onResult: @escaping @Sendable (StreamResult<Output>) -> Void
  ) -> StreamHandle<Input, Output> {
    self.stream(method, .bidirectionalStream, options, demand: demand, onResult)
  }

  private func stream<Input, Output>(
    _ method: MethodSpec<Input, Output>,
    _ streamType: StreamType,
    _ options: CallOptions,
    demand: Int,
    _ onResult: @escaping @Sendable (StreamResult<Output>) -> Void
  ) -> StreamHandle<Input, Output> {
    let call = self.makeStream(method.erased, streamType, options) { onResult(StreamResult($0)) }
    return self.start(call, demand: demand)
  }

  private func start<Input, Output>(_ call: StreamCall, demand: Int) -> StreamHandle<Input, Output> {
    call.run { side, call in
      call.startOnExecutor()
      side.request(demand, call)
    }
    return StreamHandle(call: call)
  }

  // MARK: For both

  /// - Parameter onResult: Called on the executor with each result.
  func makeStream(
    _ method: AnyMethod,
    _ streamType: StreamType,
    _ options: CallOptions,
    _ onResult: @escaping @Sendable (ResultPart) -> Void
  ) -> StreamCall {
    let side = StreamSide(
      of: method.info,
      maximumQueued: self.config.limits.maximumQueuedMessages,
      onResult: onResult
    )
    return StreamCall(self.makeCall(of: method, as: streamType, options, side), side)
  }

  /// - Parameter completion: Called once on the executor.
  func makeClientStream(
    _ method: AnyMethod,
    _ options: CallOptions,
    _ completion: @escaping @Sendable (AnyResponse) -> Void
  ) -> StreamCall {
    let receiver = Confined(SingleMessageReceiver(method: method.info, completion: completion))
    let call = self.makeStream(method, .clientStream, options) { receiver.value.receive($0) }
    receiver.value.call = call.call
    return call
  }
}
