internal import NIOCore

/// The message hooks of a unary call.
final class UnaryMessageChain<Input: Sendable, Output: Sendable>: UnaryChain<Input, ResponseMessage<Output>>,
  @unchecked Sendable
{
  private unowned let owner: UnaryCall<Input, Output>

  init(call: UnaryCall<Input, Output>, capacity: Int) {
    self.owner = call
    super.init(call: call, level: "message", capacity: capacity)
  }

  override func passDown(_ request: HTTPRequest<Input>) { self.owner.send(request.message, request.head) }
  override func passUp(_ response: ResponseMessage<Output>) { self.owner.finish(with: response) }
  override func abandonInside() { self.owner.abandonBytes() }
}

/// The byte hooks of a unary call.
final class UnaryByteChain: UnaryChain<ByteBuffer, HTTPResponse>, @unchecked Sendable {
  private unowned let owner: Call

  init(call: Call, capacity: Int) {
    self.owner = call
    super.init(call: call, level: "byte", capacity: capacity)
  }

  override func passDown(_ request: HTTPRequest<ByteBuffer>) { self.owner.sendBytes(request) }
  override func passUp(_ response: HTTPResponse) { self.owner.receiveBytes(response) }
  override func abandonInside() { self.owner.dropExchange() }
  override var outerRunner: any JobRunner { self.owner.byteRunner }
}
