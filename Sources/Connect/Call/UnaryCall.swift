internal import NIOCore

/// A call with one request message and one response message.
///
/// Confined to its executor like every ``Call``.
final class UnaryCall<Input: Sendable, Output: Sendable>: Call, @unchecked Sendable {
  private let spec: MethodSpec<Input, Output>
  private let input: Input
  private let outerRunner: (any JobRunner)?
  private var completion: (@Sendable (ResponseMessage<Output>) -> Void)?

  private var messageChain: UnaryChain<Input, ResponseMessage<Output>>?
  private var byteChain: UnaryChain<ByteBuffer, HTTPResponse>?
  private var collector: SingleMessageCollector<ByteBuffer>
  private var acceptsNotModified = false

  /// - Parameter completion: Called once, on the executor.
  init(
    client: ProtocolClient,
    method: MethodSpec<Input, Output>,
    input: Input,
    options: CallOptions,
    outerRunner: (any JobRunner)?,
    completion: @escaping @Sendable (ResponseMessage<Output>) -> Void
  ) {
    self.spec = method
    self.input = input
    self.outerRunner = outerRunner
    self.completion = completion
    self.collector = SingleMessageCollector(method: method.info)
    super.init(client: client, method: method.info, streamType: .unary, options: options)
  }

  /// Nobody is left who could go on with the call or end it. Hooks that wait are told, like at any other end.
  deinit {
    guard let completion = self.completion else { return }
    let error = ConnectError.abandoned(self.method)
    let byteChain = self.byteChain
    let messageChain = self.messageChain
    self.executor.execute {
      byteChain?.terminate(with: error)
      messageChain?.terminate(with: error)
      byteChain?.release()
      messageChain?.release()
      completion(ResponseMessage(error: error))
    }
  }

  // MARK: Down

  override func begin() {
    self.resolveInterceptors()
    let request = self.makeRequest(self.input)
    if let chain = self.messageChain { chain.start(request) } else { self.encode(request) }
  }

  private func resolveInterceptors() {
    var messageStages: [UnaryChain<Input, ResponseMessage<Output>>.Stage] = []
    var byteStages: [UnaryChain<ByteBuffer, HTTPResponse>.Stage] = []
    let spec = self.spec
    for interceptor in self.makeInterceptors() {
      if let form = interceptor.asyncUnaryForm {
        messageStages.append(
          .async { request, next in
            try await form.interceptUnary(request, method: spec, next: UnaryNext(next))
          }
        )
      }
      let messageHooks = interceptor.unaryMessageFunction(spec)
      if !messageHooks.isEmpty { messageStages.append(.hooks(messageHooks)) }
      let byteHooks = interceptor.unaryFunction()
      if !byteHooks.isEmpty { byteStages.append(.hooks(byteHooks)) }
    }
    if !messageStages.isEmpty {
      self.messageChain = UnaryChain(
        call: self,
        level: "message",
        stages: messageStages,
        outerRunner: self.outerRunner,
        down: { [unowned self] in self.encode($0) },
        up: { [unowned self] in self.complete(with: $0) },
        abandon: { [unowned self] in
          self.byteChain?.reset()
          self.dropExchange()
        }
      )
    }
    if !byteStages.isEmpty {
      self.byteChain = UnaryChain(
        call: self,
        level: "byte",
        stages: byteStages,
        outerRunner: self.outerRunner,
        down: { [unowned self] in self.send($0) },
        up: { [unowned self] in self.decode($0) },
        abandon: { [unowned self] in self.dropExchange() }
      )
    }
  }

  private func encode(_ request: HTTPRequest<Input>) {
    let bytes: ByteBuffer
    do {
      bytes = try self.client.config.codec.encode(
        request.message,
        as: self.spec.input,
        deterministic: request.isGET
      )
    } catch {
      self.pass(ResponseMessage(error: .encodingFailed(error, method: self.method)))
      return
    }
    var encoded = request.with(bytes)
    guard let chain = self.byteChain else {
      self.send(encoded)
      return
    }
    if encoded.isGET { encoded.isGET = RequestWriter(self).goesAsGET(encoded) }
    chain.start(encoded)
  }

  private func send(_ request: HTTPRequest<ByteBuffer>) {
    self.collector = SingleMessageCollector(method: self.method)
    self.acceptsNotModified = request.headers.contains("if-none-match")
    self.startExchange(request.with(()), body: .message(request.message))
  }

  // MARK: Up

  override func exchangeHasResults() {
    guard let exchange = self.exchange else { return }
    while let result = exchange.next() {
      guard let collected = self.collector.receive(result) else { continue }
      let response = self.makeResponse(collected, head: exchange.head)
      self.dropExchange()
      if let chain = self.byteChain { chain.receive(response) } else { self.decode(response) }
      return
    }
  }

  private func makeResponse(
    _ collected: ResponseMessage<ByteBuffer>,
    head: HTTPResponseHead?
  ) -> HTTPResponse {
    var response = HTTPResponse(
      code: collected.code,
      headers: collected.headers,
      message: collected.message ?? ByteBuffer(),
      trailers: collected.trailers,
      error: collected.error,
      httpStatus: head?.status,
      httpHeaders: head?.headers ?? Headers()
    )
    if response.error != nil, response.error?.httpStatus == nil { response.error?.httpStatus = head?.status }
    if head?.status == 304, self.acceptsNotModified {
      response.code = .ok
      response.error = nil
    }
    return response
  }

  override var metricsHooks: MetricsHooks? { self.byteChain?.metricsHooks }

  private func decode(_ response: HTTPResponse) {
    if let error = response.error {
      self.pass(
        ResponseMessage(
          code: error.code,
          headers: response.headers,
          result: .failure(error),
          trailers: response.trailers
        )
      )
      return
    }
    if response.httpStatus == 304, response.message.readableBytes == 0 {
      self.pass(ResponseMessage(error: .unansweredNotModified(response), headers: response.headers))
      return
    }
    do {
      let message = try self.client.config.codec.decode(response.message, as: self.spec.output)
      self.pass(
        ResponseMessage(message: message, headers: response.headers, trailers: response.trailers)
      )
    } catch {
      let error = ConnectError.decodingFailed(error, method: self.method, response: response)
      self.pass(
        ResponseMessage(
          code: error.code,
          headers: response.headers,
          result: .failure(error),
          trailers: response.trailers
        )
      )
    }
  }

  private func pass(_ response: ResponseMessage<Output>) {
    if let chain = self.messageChain { chain.receive(response) } else { self.complete(with: response) }
  }

  // MARK: End

  private func complete(with response: ResponseMessage<Output>) {
    guard self.markOver() else { return }
    let completion = self.completion
    self.completion = nil
    completion?(response)
  }

  override func fail(with error: ConnectError) {
    self.byteChain?.terminate(with: error)
    self.messageChain?.terminate(with: error)
    self.complete(with: ResponseMessage(error: error))
  }

  override func release() {
    self.messageChain?.release()
    self.byteChain?.release()
    self.messageChain = nil
    self.byteChain = nil
  }
}
