internal import ConformanceMessages
internal import Connect
internal import SwiftProtobuf

extension CaseCall {
  func unary<Input: SwiftProtobuf.Message, Output: ConformanceResponse>(
    _ method: MethodSpec<Input, Output>
  ) async throws -> ResponseResult {
    let message: Input = try self.message()
    var result = ResponseResult()
    if self.usesCallbacks {
      await self.unaryWithCallback(method, message, &result)
    } else {
      await self.unaryWithTask(method, message, &result)
    }
    return result
  }

  private func unaryWithTask<Input: SwiftProtobuf.Message, Output: ConformanceResponse>(
    _ method: MethodSpec<Input, Output>,
    _ message: Input,
    _ result: inout ResponseResult
  ) async {
    let (client, options) = (self.client, self.callOptions)
    let call = Task { await client.unary(method, message, options: options) }
    let canceller = self.cancelAfterCloseSend { call.cancel() }
    defer { canceller?.cancel() }
    let response = await withTaskCancellationHandler {
      await call.value
    } onCancel: {
      call.cancel()
    }
    result.record(response, self.invariants)
  }

  private func unaryWithCallback<Input: SwiftProtobuf.Message, Output: ConformanceResponse>(
    _ method: MethodSpec<Input, Output>,
    _ message: Input,
    _ result: inout ResponseResult
  ) async {
    let outcome = OneShot<ResponseMessage<Output>>()
    let handle = self.client.unary(
      method,
      message,
      options: self.callOptions,
      completion: outcome.callback(self.invariants)
    )
    let canceller = self.cancelAfterCloseSend { handle.cancel() }
    defer { canceller?.cancel() }
    let response = await withTaskCancellationHandler {
      await outcome.value()
    } onCancel: {
      handle.cancel()
    }
    result.record(response, self.invariants)
  }
}
