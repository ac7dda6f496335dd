internal import ConformanceMessages
internal import Connect
internal import SwiftProtobuf

extension CaseCall {
  func clientStream<Input: SwiftProtobuf.Message, Output: ConformanceResponse>(
    _ method: MethodSpec<Input, Output>
  ) async throws -> ResponseResult {
    let messages: [Input] = try self.messages()
    var result = ResponseResult()
    let (request, response) = self.startClientStream(method)
    for (index, message) in messages.enumerated() {
      try await self.waitBeforeMessage()
      guard await request.send(message) == nil else {
        result.numUnsentRequests = Int32(messages.count - index)
        break
      }
    }
    if self.cancelTiming == .beforeCloseSend { request.cancel() }
    let canceller = self.cancelAfterCloseSend(request.cancel)
    defer { canceller?.cancel() }
    result.record(await response(), self.invariants)
    await request.checkEnd(self.invariants)
    return result
  }

  func serverStream<Input: SwiftProtobuf.Message, Output: ConformanceResponse>(
    _ method: MethodSpec<Input, Output>
  ) async throws -> ResponseResult {
    let message: Input = try self.message()
    var recorder = StreamRecorder<Output>(self.invariants)
    var (request, responses) = self.startServerStream(method, message)
    let canceller = self.cancelAfterCloseSend(request.cancel)
    defer { canceller?.cancel() }
    await self.receiveRest(&responses, recorder: &recorder, cancel: request.cancel)
    await self.checkEnd(of: request, &responses, recorder: &recorder)
    return recorder.result
  }

  func bidiStream<Input: SwiftProtobuf.Message, Output: ConformanceResponse>(
    _ method: MethodSpec<Input, Output>,
    isFullDuplex: Bool
  ) async throws -> ResponseResult {
    let messages: [Input] = try self.messages()
    var recorder = StreamRecorder<Output>(self.invariants)
    var (request, responses) = self.startBidirectionalStream(method)
    for (index, message) in messages.enumerated() {
      try await self.waitBeforeMessage()
      guard await request.send(message) == nil else {
        recorder.result.numUnsentRequests = Int32(messages.count - index)
        break
      }
      guard isFullDuplex else { continue }
      await self.receiveOne(&responses, recorder: &recorder, cancel: request.cancel)
      if recorder.isComplete {
        recorder.result.numUnsentRequests = Int32(messages.count - index - 1)
        break
      }
    }
    if self.cancelTiming == .beforeCloseSend { request.cancel() }
    request.finish()
    if case .afterCloseSend(let delay) = self.cancelTiming {
      if delay > .zero { try await Task.sleep(for: delay) }
      request.cancel()
    }
    await self.receiveRest(&responses, recorder: &recorder, cancel: request.cancel)
    await self.checkEnd(of: request, &responses, recorder: &recorder)
    return recorder.result
  }

  /// Receives until a message has come, or the end.
  private func receiveOne<Output>(
    _ responses: inout any ResponseSide<Output>,
    recorder: inout StreamRecorder<Output>,
    cancel: () -> Void
  ) async {
    let count = recorder.result.payloads.count
    if count == 0, self.cancelTiming == .afterResponses(0) { cancel() }
    while let result = await responses.next() {
      recorder.record(result)
      if recorder.result.payloads.count > count {
        if self.cancelTiming == .afterResponses(recorder.result.payloads.count) { cancel() }
        return
      }
      if recorder.isComplete { return }
    }
    recorder.recordEndOfResults()
  }

  /// Receives until the end.
  private func receiveRest<Output>(
    _ responses: inout any ResponseSide<Output>,
    recorder: inout StreamRecorder<Output>,
    cancel: () -> Void
  ) async {
    while !recorder.isComplete {
      await self.receiveOne(&responses, recorder: &recorder, cancel: cancel)
    }
  }

  /// Checks that a call that has ended takes no message and brings no result.
  private func checkEnd<Input: SwiftProtobuf.Message, Output>(
    of request: RequestSide<Input>,
    _ responses: inout any ResponseSide<Output>,
    recorder: inout StreamRecorder<Output>
  ) async {
    await request.checkEnd(self.invariants)
    if let result = await responses.next() { recorder.record(result) }
  }
}
