internal import ConformanceMessages
internal import Connect

extension CaseCall {
  /// Starts a call with a stream of requests and one response.
  ///
  /// - Returns: The request, and a function that ends the request and waits for the response.
  func startClientStream<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> (RequestSide<Input>, @Sendable () async -> ResponseMessage<Output>) {
    guard self.usesCallbacks else {
      let stream = self.client.clientStream(method, options: self.callOptions)
      return (RequestSide(stream), { await stream.closeAndReceive() })
    }
    let outcome = OneShot<ResponseMessage<Output>>()
    let handle = self.client.clientStream(
      method,
      options: self.callOptions,
      completion: outcome.callback(self.invariants)
    )
    return (
      RequestSide(handle, self.invariants),
      {
        handle.finish()
        return await withTaskCancellationHandler {
          await outcome.value()
        } onCancel: {
          handle.cancel()
        }
      }
    )
  }

  /// Starts a call with one request and a stream of responses.
  func startServerStream<Input, Output>(
    _ method: MethodSpec<Input, Output>,
    _ message: Input
  ) -> (RequestSide<Input>, any ResponseSide<Output>) {
    guard self.usesCallbacks else {
      let stream = self.client.serverStream(method, message, options: self.callOptions)
      return (RequestSide(stream, self.invariants), IteratedResults(stream.results))
    }
    let queue = CallbackQueue<Output>(self.invariants)
    let handle = self.client.serverStream(method, message, options: self.callOptions, demand: 0) {
      queue.receive($0)
    }
    return (RequestSide(handle, self.invariants), CalledBackResults(handle: handle, queue: queue))
  }

  /// Starts a call with streams in both directions.
  func startBidirectionalStream<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> (RequestSide<Input>, any ResponseSide<Output>) {
    guard self.usesCallbacks else {
      let stream = self.client.bidirectionalStream(method, options: self.callOptions)
      return (RequestSide(stream), IteratedResults(stream.results))
    }
    let queue = CallbackQueue<Output>(self.invariants)
    let handle = self.client.bidirectionalStream(method, options: self.callOptions, demand: 0) {
      queue.receive($0)
    }
    return (RequestSide(handle, self.invariants), CalledBackResults(handle: handle, queue: queue))
  }
}
