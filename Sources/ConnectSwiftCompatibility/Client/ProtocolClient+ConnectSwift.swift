public import Connect

extension ProtocolClient {
  /// A client with connect-swift's options.
  ///
  /// - Parameters:
  ///   - httpClient: The transport, for example `NIOHTTPClient()`; there is no default.
  ///   - config: The host and the options of all calls.
  public convenience init(httpClient: any HTTPClientInterface, config: ProtocolClientConfig) {
    self.init(httpClient: httpClient, config: config.native)
  }
}

extension ProtocolClient: ProtocolClientInterface {
  @discardableResult
  public func unary<Input: ProtobufMessage, Output: ProtobufMessage>(
    path: String,
    idempotencyLevel: IdempotencyLevel,
    request: Input,
    headers: Headers,
    completion: @escaping @Sendable (ResponseMessage<Output>) -> Void
  ) -> Cancelable {
    let method = Connect::MethodSpec<Input, Output>(path, .unary, idempotencyLevel)
    let handle = self.unary(method, request, options: CallOptions(headers)) {
      completion(ResponseMessage($0))
    }
    return Cancelable { handle.cancel() }
  }

  public func bidirectionalStream<Input: ProtobufMessage, Output: ProtobufMessage>(
    path: String,
    headers: Headers,
    onResult: @escaping @Sendable (StreamResult<Output>) -> Void
  ) -> any BidirectionalStreamInterface<Input> {
    let method = Connect::MethodSpec<Input, Output>(path, .bidirectionalStream)
    let failure = SendFailure()
    let handle = self.bidirectionalStream(method, options: CallOptions(headers)) {
      onResult(failure.result(of: $0))
    }
    return CallbackStream(sender: MessageSender(handle, failure))
  }

  public func clientOnlyStream<Input: ProtobufMessage, Output: ProtobufMessage>(
    path: String,
    headers: Headers,
    onResult: @escaping @Sendable (StreamResult<Output>) -> Void
  ) -> any ClientOnlyStreamInterface<Input> {
    CallbackStream(sender: self.clientStream(path, headers, onResult))
  }

  public func serverOnlyStream<Input: ProtobufMessage, Output: ProtobufMessage>(
    path: String,
    headers: Headers,
    onResult: @escaping @Sendable (StreamResult<Output>) -> Void
  ) -> any ServerOnlyStreamInterface<Input> {
    let method = Connect::MethodSpec<Input, Output>(path, .serverStream)
    let failure = SendFailure()
    let handle = self.openServerStream(method, options: CallOptions(headers)) {
      onResult(failure.result(of: $0))
    }
    return ServerOnlyCallbackStream(sender: MessageSender(handle, failure))
  }

  public nonisolated(nonsending) func unary<Input: ProtobufMessage, Output: ProtobufMessage>(
    path: String,
    idempotencyLevel: IdempotencyLevel,
    request: Input,
    headers: Headers
  ) async -> ResponseMessage<Output> {
    let method = Connect::MethodSpec<Input, Output>(path, .unary, idempotencyLevel)
    return ResponseMessage(await self.unary(method, request, options: CallOptions(headers)))
  }

  public func bidirectionalStream<Input: ProtobufMessage, Output: ProtobufMessage>(
    path: String,
    headers: Headers
  ) -> any BidirectionalAsyncStreamInterface<Input, Output> {
    let method = Connect::MethodSpec<Input, Output>(path, .bidirectionalStream)
    let failure = SendFailure()
    let stream = self.bidirectionalStream(method, options: CallOptions(headers))
    return AsyncStreamCall(
      sender: MessageSender(stream.handle, failure),
      stream: failure.results(of: stream.results)
    )
  }

  public func clientOnlyStream<Input: ProtobufMessage, Output: ProtobufMessage>(
    path: String,
    headers: Headers
  ) -> any ClientOnlyAsyncStreamInterface<Input, Output> {
    // At most three results: headers, a message, and the end.
    let (results, continuation) = AsyncStream.makeStream(of: StreamResult<Output>.self)
    let sender: MessageSender<Input, Output> = self.clientStream(path, headers) { result in
      continuation.yield(result)
      if case .complete = result { continuation.finish() }
    }
    continuation.onTermination = { termination in
      if case .cancelled = termination { sender.cancel() }
    }
    return AsyncStreamCall(sender: sender, stream: results)
  }

  public func serverOnlyStream<Input: ProtobufMessage, Output: ProtobufMessage>(
    path: String,
    headers: Headers
  ) -> any ServerOnlyAsyncStreamInterface<Input, Output> {
    let method = Connect::MethodSpec<Input, Output>(path, .serverStream)
    let failure = SendFailure()
    let stream = self.openServerStream(method, options: CallOptions(headers))
    return ServerOnlyAsyncStreamCall(
      sender: MessageSender(stream.handle, failure),
      stream: failure.results(of: stream.results)
    )
  }

  /// Starts a client stream, whose response becomes the results of a stream.
  private func clientStream<Input: ProtobufMessage, Output: ProtobufMessage>(
    _ path: String,
    _ headers: Headers,
    _ onResult: @escaping @Sendable (StreamResult<Output>) -> Void
  ) -> MessageSender<Input, Output> {
    let method = Connect::MethodSpec<Input, Output>(path, .clientStream)
    let failure = SendFailure()
    let handle = self.clientStream(method, options: CallOptions(headers)) { response in
      if response.message != nil || !response.headers.isEmpty {
        onResult(.headers(response.headers.dictionary))
      }
      if let message = response.message { onResult(.message(message)) }
      onResult(
        failure.result(
          of: .complete(code: response.code, error: response.error, trailers: response.trailers)
        )
      )
    }
    return MessageSender(handle, failure)
  }
}

extension CallOptions {
  fileprivate init(_ headers: [String: [String]]) {
    self.init(headers: Connect::Headers(headers))
  }
}

extension Connect::MethodSpec where Input: ProtobufMessage, Output: ProtobufMessage {
  /// - Parameter path: With or without a slash in front.
  fileprivate init(
    _ path: String,
    _ streamType: StreamType,
    _ idempotencyLevel: IdempotencyLevel = .unknown
  ) {
    self.init(
      path: path.hasPrefix("/") ? path : "/\(path)",
      streamType: streamType,
      idempotencyLevel: idempotencyLevel
    )
  }
}
