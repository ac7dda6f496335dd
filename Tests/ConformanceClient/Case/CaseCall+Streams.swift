internal import ConformanceMessages
internal import Connect
internal import SwiftProtobuf

extension CaseCall {
  func clientStream<Input: SwiftProtobuf.Message, Output: ConformanceResponse>(
    _ method: MethodSpec<Input, Output>
  ) async throws -> ResponseResult {
    let messages: [Input] = try self.messages()
    var result = ResponseResult()
    let stream = self.client.clientStream(method, options: self.callOptions)
    for (index, message) in messages.enumerated() {
      try await self.waitBeforeMessage()
      do {
        try await stream.send(message)
      } catch {
        result.numUnsentRequests = Int32(messages.count - index)
        break
      }
    }
    if self.cancelTiming == .beforeCloseSend { stream.cancel() }
    let canceller = self.cancelAfterCloseSend { stream.cancel() }
    defer { canceller?.cancel() }
    result.record(await stream.closeAndReceive())
    return result
  }

  func serverStream<Input: SwiftProtobuf.Message, Output: ConformanceResponse>(
    _ method: MethodSpec<Input, Output>
  ) async throws -> ResponseResult {
    let message: Input = try self.message()
    var recorder = StreamRecorder<Output>()
    let stream = self.client.serverStream(method, message, options: self.callOptions)
    let canceller = self.cancelAfterCloseSend { stream.cancel() }
    defer { canceller?.cancel() }
    await self.receiveRest(stream.results, recorder: &recorder) { stream.cancel() }
    return recorder.result
  }

  func bidiStream<Input: SwiftProtobuf.Message, Output: ConformanceResponse>(
    _ method: MethodSpec<Input, Output>,
    isFullDuplex: Bool
  ) async throws -> ResponseResult {
    let messages: [Input] = try self.messages()
    var recorder = StreamRecorder<Output>()
    let stream = self.client.bidirectionalStream(method, options: self.callOptions)
    for (index, message) in messages.enumerated() {
      try await self.waitBeforeMessage()
      do {
        try await stream.send(message)
      } catch {
        recorder.result.numUnsentRequests = Int32(messages.count - index)
        break
      }
      guard isFullDuplex else { continue }
      await self.receiveOne(stream.results, recorder: &recorder) { stream.cancel() }
      if recorder.isComplete {
        recorder.result.numUnsentRequests = Int32(messages.count - index - 1)
        break
      }
    }
    if self.cancelTiming == .beforeCloseSend { stream.cancel() }
    stream.finish()
    if case .afterCloseSend(let delay) = self.cancelTiming {
      if delay > .zero { try await Task.sleep(for: delay) }
      stream.cancel()
    }
    await self.receiveRest(stream.results, recorder: &recorder) { stream.cancel() }
    return recorder.result
  }

  /// Receives until a message has come, or the end.
  private func receiveOne<Output>(
    _ results: StreamResults<Output>,
    recorder: inout StreamRecorder<Output>,
    cancel: () -> Void
  ) async {
    let count = recorder.result.payloads.count
    if count == 0, self.cancelTiming == .afterResponses(0) { cancel() }
    for await result in results {
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
    _ results: StreamResults<Output>,
    recorder: inout StreamRecorder<Output>,
    cancel: () -> Void
  ) async {
    while !recorder.isComplete {
      await self.receiveOne(results, recorder: &recorder, cancel: cancel)
    }
  }
}
