internal import NIOCore

/// The message hooks of a unary call.
final class UnaryMessageChain<Input: Sendable, Output: Sendable>: UnaryChain<Input, ResponseMessage<Output>>,
  @unchecked Sendable
{
  private unowned let owner: UnaryCall<Input, Output>

  init(call: UnaryCall<Input, Output>, stages: [Stage]) {
    self.owner = call
    super.init(call: call, level: "message", stages: stages)
  }

  override func makeRequestOwner() -> HookOwner<RequestVerb<HTTPRequest<Input>, ResponseMessage<Output>>> {
    RequestOwner(self)
  }

  override func makeResponseOwner() -> HookOwner<ResponseVerb<HTTPRequest<Input>, ResponseMessage<Output>>> {
    ResponseOwner(self)
  }

  private final class RequestOwner: HookOwner<RequestVerb<HTTPRequest<Input>, ResponseMessage<Output>>>,
    @unchecked Sendable
  {
    private let chain: UnaryMessageChain

    init(_ chain: UnaryMessageChain) { self.chain = chain }

    override func goOn(
      _ visit: Int,
      with verb: consuming RequestVerb<HTTPRequest<Input>, ResponseMessage<Output>>
    ) {
      self.chain.requestHook(visit, did: verb)
    }
  }

  private final class ResponseOwner: HookOwner<ResponseVerb<HTTPRequest<Input>, ResponseMessage<Output>>>,
    @unchecked Sendable
  {
    private let chain: UnaryMessageChain

    init(_ chain: UnaryMessageChain) { self.chain = chain }

    override func goOn(
      _ visit: Int,
      with verb: consuming ResponseVerb<HTTPRequest<Input>, ResponseMessage<Output>>
    ) {
      self.chain.responseHook(visit, did: verb)
    }
  }

  override func passDown(_ request: HTTPRequest<Input>) { self.owner.send(request.message, request.head) }
  override func passUp(_ response: ResponseMessage<Output>) { self.owner.complete(with: response) }
  override func abandonInside() { self.owner.abandonBytes() }
}

/// The byte hooks of a unary call. What is written here again for these types is so compiled for them.
final class UnaryByteChain: UnaryChain<ByteBuffer, HTTPResponse>, @unchecked Sendable {
  private unowned let owner: Call

  init(call: Call, stages: [Stage]) {
    self.owner = call
    super.init(call: call, level: "byte", stages: stages)
  }

  override func makeRequestOwner() -> HookOwner<RequestVerb<HTTPRequest<ByteBuffer>, HTTPResponse>> {
    RequestOwner(self)
  }

  override func makeResponseOwner() -> HookOwner<ResponseVerb<HTTPRequest<ByteBuffer>, HTTPResponse>> {
    ResponseOwner(self)
  }

  private final class RequestOwner: HookOwner<RequestVerb<HTTPRequest<ByteBuffer>, HTTPResponse>>,
    @unchecked Sendable
  {
    private let chain: UnaryByteChain

    init(_ chain: UnaryByteChain) { self.chain = chain }

    override func goOn(_ visit: Int, with verb: consuming RequestVerb<HTTPRequest<ByteBuffer>, HTTPResponse>)
    {
      self.chain.requestHook(visit, did: verb)
    }
  }

  private final class ResponseOwner: HookOwner<ResponseVerb<HTTPRequest<ByteBuffer>, HTTPResponse>>,
    @unchecked Sendable
  {
    private let chain: UnaryByteChain

    init(_ chain: UnaryByteChain) { self.chain = chain }

    override func goOn(_ visit: Int, with verb: consuming ResponseVerb<HTTPRequest<ByteBuffer>, HTTPResponse>)
    {
      self.chain.responseHook(visit, did: verb)
    }
  }

  override func passDown(_ request: HTTPRequest<ByteBuffer>) { self.owner.sendBytes(request) }
  override func passUp(_ response: HTTPResponse) { self.owner.receiveBytes(response) }
  override func abandonInside() { self.owner.dropExchange() }
}
